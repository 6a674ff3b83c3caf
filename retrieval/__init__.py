"""Finds cases and procedures that may help; it reads, and logs each decision."""
