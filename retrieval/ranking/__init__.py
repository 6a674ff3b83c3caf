"""Ranks the cases that a search found, chooses the slate, composes the answer and logs the decision."""
