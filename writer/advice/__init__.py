"""Advice at a failed call: stores each run's failures and fixes, answers failed calls, and rewards the advice."""
