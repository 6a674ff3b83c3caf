"""Analysis of a run's tool calls: which calls failed, why, and which calls fixed them; no database, clock or I/O."""
