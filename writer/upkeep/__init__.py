"""Upkeep jobs: prune old rows, index large profiles, move to another embedding model, encrypt older rows."""
