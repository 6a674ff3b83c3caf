"""Replays of profiles, and the words that tell their kinds of tasks apart."""
