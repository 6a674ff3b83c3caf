"""SQL expressions for vectors: to store one, and to measure its distance from the stored ones."""

from collections.abc import Sequence

from pgvector.sqlalchemy import Vector
from sqlalchemy import REAL, ColumnElement, Float, cast, literal
from sqlalchemy.dialects.postgresql import ARRAY

from retrieval.tables.cases import case_embeddings


def stored(vector: list[float]) -> ColumnElement[Sequence[float]]:
    """Returns the vector as an SQL value for ``case_embeddings.embedding``, with or without pgvector."""
    return cast(literal(vector, ARRAY(REAL)), ARRAY(REAL))


def cosine_distance(vector: list[float]) -> ColumnElement[float]:
    """Returns the SQL expression for a stored vector's cosine distance, 0 to 2, from this one; needs pgvector."""
    return case_embeddings.c.embedding.op("<=>", return_type=Float())(cast(stored(vector), Vector(len(vector))))
