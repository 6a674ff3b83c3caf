"""Rewrites a user's message into a query."""
