"""Reads a session: the newest turns that fit a budget of tokens, and a summary of those that do not."""
