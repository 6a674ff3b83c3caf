"""Training in a process of its own, which leaves the service its processor."""
