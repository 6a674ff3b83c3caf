"""Looks up and summarises findings: what the calls of a run found out, such as the content of a file."""
