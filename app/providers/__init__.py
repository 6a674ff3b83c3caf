"""Embedders: one in the process, one over HTTP."""
