"""Vectors on their way into the bank, and beside those that are there."""

from collections.abc import Sequence

from pgvector.sqlalchemy import Vector
from sqlalchemy import REAL, ColumnElement, Float, cast, literal
from sqlalchemy.dialects.postgresql import ARRAY

from retrieval.tables.cases import case_embeddings


def stored(vector: list[float]) -> ColumnElement[Sequence[float]]:
    """Returns the vector as a value for ``case_embeddings.embedding``, whichever type that column has."""
    return cast(literal(vector, ARRAY(REAL)), ARRAY(REAL))


def cosine_distance(vector: list[float]) -> ColumnElement[float]:
    """Returns the distance, 0 to 2, of each stored vector from this one; needs pgvector."""
    return case_embeddings.c.embedding.op("<=>", return_type=Float())(cast(stored(vector), Vector(len(vector))))
