"""Training: learns policies from the log of decisions, judges each in a trial, and puts the winners into service."""
