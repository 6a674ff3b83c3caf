"""Ranks the rows of a search, chooses the slate, composes the answer and logs the decision."""
