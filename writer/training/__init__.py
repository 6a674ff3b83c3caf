"""From the log of decisions to a candidate, a verdict, and what serves."""
