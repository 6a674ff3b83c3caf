"""Closed loops in SQL and in a shell: the scripted agent of `python -m bench failures`, and its two worlds."""
