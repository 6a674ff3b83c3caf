"""Stores finished runs, and runs that are sent step by step; a finished run's row is its case and its queue entry."""
