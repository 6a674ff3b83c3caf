"""Analysis of a run's tool calls: which failed, why, and which later call fixed it. Pure: no database, clock or I/O."""
