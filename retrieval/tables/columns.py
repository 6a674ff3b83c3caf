"""The MetaData of all tables, and the columns and constraints that many of them share."""

from typing import Any, get_args

from pgvector.sqlalchemy import Vector
from sqlalchemy import CheckConstraint, Column, DateTime, Integer, MetaData, SmallInteger, Text, Uuid, func, text
from sqlalchemy.dialects.postgresql import TSVECTOR

metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
        "ck": "%(table_name)s_%(constraint_name)s_check",
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
    },
)

SEARCH_CONFIGURATION = "english"
"""Name of the text search configuration of stored search vectors and of queries, which must be the same."""

ALL_AGENTS = ""
"""The ``agent_key`` of a search in all of a user's agents, and of its row in ``decisions``; no agent has this name."""


def user() -> Column[str]:
    """Returns the column ``user_sub``, the owner of the row, with which every key begins."""
    return Column("user_sub", Text, nullable=False)


def created() -> Column[object]:
    """Returns the column with the time at which the row was created."""
    return Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now())


def queue_columns() -> tuple[Column[Any], ...]:
    """Returns new columns for a table whose pending rows are a queue; see ``writer.queue``."""
    return (
        Column("attempts", SmallInteger, nullable=False, server_default=text("0")),
        Column("available_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
        Column("lease_token", Uuid),
        Column("last_error", Text),
    )


def search_columns() -> tuple[Column[Any], ...]:
    """Returns new columns for a table whose texts are searched: for the index of the words and for the vector."""
    return (
        Column(
            "search_text",
            Text,
            nullable=False,
            server_default=text("''"),
            comment="to be indexed; a trigger empties it",
        ),
        Column("search_vector", TSVECTOR, comment="of search_text, by a trigger"),
        Column(
            "word_count",
            Integer,
            nullable=False,
            server_default=text("0"),
            comment="of search_text without stop words, by a trigger",
        ),
        Column("model", Text, comment="of the vector; null: it has none yet, or none can be made"),
        Column("embedding", Vector(), comment="real[] where pgvector is missing"),
    )


def one_of(column: str, kind: object) -> CheckConstraint:
    """Returns the constraint that the column has one of the values of an enumeration of ``retrieval.tables.kinds``."""
    return CheckConstraint(f"{column} IN ({', '.join(repr(value) for value in get_args(kind))})", name=column)


def unit_interval(column: str) -> CheckConstraint:
    """Returns the constraint that the column's value lies within 0 and 1."""
    return CheckConstraint(f"{column} >= 0 AND {column} <= 1", name=column)
