"""Advice at a failed call: what is kept of each run's failures, who asks, and what came of it."""
