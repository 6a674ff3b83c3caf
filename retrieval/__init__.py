"""Finds cases and procedures that may help an agent; reads the bank, and logs the decision of each retrieval."""
