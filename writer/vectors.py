"""SQL expressions for a vector to store."""

from collections.abc import Sequence

from sqlalchemy import REAL, ColumnElement, bindparam, cast, literal
from sqlalchemy.dialects.postgresql import ARRAY


def stored(vector: list[float]) -> ColumnElement[Sequence[float]]:
    """Returns the vector as an SQL value for ``case_embeddings.embedding``, with or without pgvector."""
    return cast(literal(vector, ARRAY(REAL)), ARRAY(REAL))


def stored_later(name: str) -> ColumnElement[Sequence[float]]:
    """Returns the SQL value for a vector that is passed as a parameter of this name when the statement is run."""
    return cast(bindparam(name, type_=ARRAY(REAL)), ARRAY(REAL))
