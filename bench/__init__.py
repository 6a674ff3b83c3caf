"""Benchmarks: every number is a ratio measured within one run."""
