"""Processes that casebank starts: a service of its own, and its own modules."""
