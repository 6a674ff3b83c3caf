"""Worlds with scripted agents, and the experiment that compares agents with and without memory."""
