"""Errors of migrations."""

from retrieval.errors import CasebankError, DatabaseUnavailable


class SchemaInUse(DatabaseUnavailable):
    """A migration did not get the tables to itself in time, and changed nothing."""


class MigrationRefused(CasebankError):
    """The database or alembic refused, and nothing was changed; the text quotes their error in one line."""
