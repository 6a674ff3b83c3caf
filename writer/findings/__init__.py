"""Findings of a run's steps: the calls that read, search, ask or change something, and summaries of their outputs."""
