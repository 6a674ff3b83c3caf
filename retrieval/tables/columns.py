"""The MetaData of all tables, the columns and constraints that tables share, and checks of numbers for a column."""

import math
from collections.abc import Sequence
from ctypes import c_float
from typing import Any, get_args

from pgvector.sqlalchemy import Vector
from pydantic import AfterValidator
from sqlalchemy import (
    REAL,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import TSVECTOR
from sqlalchemy.schema import SchemaItem

metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
        "ck": "%(table_name)s_%(constraint_name)s_check",
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
    }
)

SEARCH_CONFIGURATION = "english"
"""Name of the text search configuration of stored search vectors and of queries, which must be the same."""

ALL_AGENTS = ""
"""The ``agent_key`` of a search in all of a user's agents, and of its row in ``decisions``; no agent has this name."""

TIME = DateTime(timezone=True)


def user_table(
    name: str,
    key: Sequence[str],
    *items: SchemaItem,
    dated: bool = True,
    comment: str | None = None,
    prefixes: Sequence[str] = (),
) -> Table:
    """Returns a table whose rows belong to users.

    Args:
        name: name of the table.
        key: columns of the primary key after ``user_sub``, the owner of the row, with which every key begins.
        items: the other columns, keys, checks and indexes.
        dated: true if the table has the time at which each row was created.
        comment: comment on the table.
        prefixes: words before TABLE in the statement that creates the table.
    """
    every = [needed("user_sub", Text), *items, PrimaryKeyConstraint("user_sub", *key)] + [created()] * dated
    every.sort(key=lambda item: not isinstance(item, Column))  # an index takes columns that are there
    return Table(name, metadata, *every, comment=comment, prefixes=list(prefixes))


def needed(name: str, kind: Any, comment: str | None = None, *, default: str | None = None) -> Column[Any]:
    """Returns a column that is never null; ``default`` is an expression of SQL."""
    value = None if default is None else text(default)
    return Column(name, kind, nullable=False, comment=comment, server_default=value)


def optional(name: str, kind: Any, comment: str | None = None) -> Column[Any]:
    """Returns a column that may be null."""
    return Column(name, kind, comment=comment)


def refers(table: str, *, cascade: bool = False, **columns: str) -> ForeignKeyConstraint:
    """Returns a foreign key to a table of users; ``cascade``: its rows are deleted with the row that they refer to.

    ``columns`` has the column of the other table by the name of each column, without ``user_sub``.
    """
    others = [f"{table}.{other}" for other in ("user_sub", *columns.values())]
    return ForeignKeyConstraint(["user_sub", *columns], others, ondelete="CASCADE" if cascade else None)


def index(name: str | None, *columns: str, where: str | None = None, unique: bool = False) -> Index:
    """Returns an index that begins with ``user_sub``; ``where`` is the condition of a partial index."""
    return Index(name, "user_sub", *columns, unique=unique, postgresql_where=None if where is None else text(where))


def unique(*columns: str) -> UniqueConstraint:
    """Returns the constraint that a user has each combination of values of the columns once."""
    return UniqueConstraint("user_sub", *columns)


def check(name: str, condition: str) -> CheckConstraint:
    """Returns a constraint on a row."""
    return CheckConstraint(condition, name=name)


def created() -> Column[Any]:
    """Returns the column with the time at which the row was created."""
    return needed("created_at", TIME, default="now()")


def queue(table: str) -> tuple[SchemaItem, ...]:
    """Returns new columns and indexes for a table whose pending rows are a queue; see ``writer.queue``."""
    return (
        needed("attempts", SmallInteger, default="0"),
        needed("available_at", TIME, default="now()"),
        optional("lease_token", Uuid),
        optional("last_error", Text),
        index(f"{table}_queue_idx", "available_at", where="status = 'pending'"),
        index(f"{table}_dead_idx", where="status = 'dead'"),
    )


def search_columns() -> tuple[Column[Any], ...]:
    """Returns new columns for a table whose texts are searched: for the index of the words and for the vector."""
    return (
        needed("search_text", Text, "to be indexed; a trigger empties it", default="''"),
        optional("search_vector", TSVECTOR, "of search_text, by a trigger"),
        needed("word_count", Integer, "of search_text without stop words, by a trigger", default="0"),
        optional("model", Text, "of the vector; null: it has none yet, or none can be made"),
        optional("embedding", Vector(), "real[] where pgvector is missing"),
    )


def one_of(column: str, kind: object) -> CheckConstraint:
    """Returns the constraint that the column has one of the values of an enumeration of ``retrieval.tables.kinds``."""
    return check(column, f"{column} IN ({', '.join(repr(value) for value in get_args(kind))})")


def unit_interval(column: str) -> CheckConstraint:
    """Returns the constraint that the column's value lies within 0 and 1."""
    return check(column, f"{column} >= 0 AND {column} <= 1")


def columns_of(table: Table, names: str) -> list[Column[Any]]:
    """Returns the columns of a table by their names, which spaces separate."""
    return [table.c[name] for name in names.split()]


SMALLINT, INTEGER = 2**15 - 1, 2**31 - 1
"""Largest numbers that columns of these types hold."""


def fits(column: Column[object]) -> AfterValidator:
    """Returns a pydantic check that a number fits the column's range, without over- or underflow of a ``real``.

    The check raises a ValueError that says how the number fails, which pydantic reports to the caller.
    """

    def real(number: float) -> float:  # four bytes hold magnitudes from about 1e-45 to 3.4e38, and zero
        stored = c_float(number).value
        if math.isinf(stored) or (stored == 0 and number != 0):
            raise ValueError("must be 0 or of a magnitude from 1e-45 to 3.4e38")
        return number

    largest = SMALLINT if isinstance(column.type, SmallInteger) else INTEGER

    def whole(number: int) -> int:
        if not -largest <= number <= largest:
            raise ValueError(f"must lie within -{largest} and {largest}")
        return number

    return AfterValidator(real if isinstance(column.type, REAL) else whole)
