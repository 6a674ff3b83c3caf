"""Replay: streams of runs in the order of time, and agents that act on remembered plans."""
