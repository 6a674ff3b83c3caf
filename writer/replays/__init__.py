"""Replays of profiles' past runs, which choose how cases are ranked, and the words that matter in that choice."""
