"""Finds cases and procedures that may help an agent; reads the bank, and logs retrievals and requests for advice."""
