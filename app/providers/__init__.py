"""Clients of models: embedders in the process or over HTTP, and language models over HTTP."""
