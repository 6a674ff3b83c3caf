"""Rewrites a user's message into the query with which cases and procedures are searched."""
