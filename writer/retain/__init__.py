"""A finished run in, one INSERT: the row is the case and its entry in the worker's queue."""
