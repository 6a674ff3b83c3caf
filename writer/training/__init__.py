"""Training: turns the log of decisions into a candidate, a verdict, and the policy that serves."""
