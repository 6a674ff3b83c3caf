"""The answer to "did memory help?", from the log of decisions."""
