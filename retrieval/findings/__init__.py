"""Findings of runs: the statements that look them up, and the summary that shows them."""
