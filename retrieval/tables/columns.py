"""The one MetaData of all tables, and the columns and checks that many of them share."""

from typing import Any, get_args

from pgvector.sqlalchemy import Vector
from sqlalchemy import CheckConstraint, Column, DateTime, Integer, MetaData, Text, func, text
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
"""The text search configuration of stored vectors and of queries; both must agree."""

ALL_AGENTS = ""
"""The ``agent_key`` of a search, and of its row in ``decisions``, that is about all of a user's agents; none is called
so."""


def user() -> Column[str]:
    """Returns the column that every key begins with: whose the row is."""
    return Column("user_sub", Text, nullable=False)


def created() -> Column[object]:
    """Returns the column that says since when there is the row."""
    return Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now())


def search_columns() -> tuple[Column[Any], ...]:
    """Returns new column definitions for a table whose texts are searched: the word index and the vector."""
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
    """Returns the check that the column has one of the values of an enumeration of ``retrieval.tables.kinds``."""
    return CheckConstraint(f"{column} IN ({', '.join(repr(value) for value in get_args(kind))})", name=column)


def unit_interval(column: str) -> CheckConstraint:
    """Returns the check that the column lies within 0 and 1."""
    return CheckConstraint(f"{column} >= 0 AND {column} <= 1", name=column)
