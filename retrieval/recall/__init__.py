"""Recall: what was said in sessions and what is known, found by what a question means, with where it comes from."""
