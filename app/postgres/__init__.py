"""Postgres: the bundled server, connections to any server, migrations, Citus."""

from app.postgres.programs import EmbeddedPostgresFailed, program
from app.postgres.server import EmbeddedPostgres, alone, is_dead, release, running, start

__all__ = [
    "EmbeddedPostgres",
    "EmbeddedPostgresFailed",
    "alone",
    "is_dead",
    "program",
    "release",
    "running",
    "start",
]
