"""Reads facts about the user: pages of them, as of a time, and the lines about the user in a context."""
