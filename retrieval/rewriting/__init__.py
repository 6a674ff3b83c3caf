"""From what a user said to what is searched for."""
