"""Opens connections to Postgres: as a user, as the worker, as the eraser, and for the fast path of requests."""
