"""Computes orders, slates and verdicts from features and logs; no I/O."""
