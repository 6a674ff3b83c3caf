"""Training in a process of its own: torch has no place in the service."""
