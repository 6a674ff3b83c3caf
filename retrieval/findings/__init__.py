"""Findings of runs as they are looked up and shown."""
