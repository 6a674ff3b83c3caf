"""The ways into Postgres: as a user, as the worker, as the eraser, and the fast path of retrieve and retain."""
