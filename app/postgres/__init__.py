"""The bundled Postgres: started and joined, left and stopped, without ever counting a dead process."""

from app.postgres.server import EmbeddedPostgres, EmbeddedPostgresFailed, program, release, running, start

__all__ = ["EmbeddedPostgres", "EmbeddedPostgresFailed", "program", "release", "running", "start"]
