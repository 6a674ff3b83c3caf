"""What a run's calls say: which failed, why, and what put it right; pure, without a database, a clock or I/O."""
