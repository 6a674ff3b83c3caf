"""Finds procedures that fit a task, by trigger, attributes or words, and chooses those to show."""
