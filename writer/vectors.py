"""SQL that stores the vectors of cases."""

from collections.abc import Sequence

import numpy as np
from sqlalchemy import REAL, ColumnElement, Text, Uuid, bindparam, cast, literal, select
from sqlalchemy.dialects.postgresql import ARRAY, Insert, insert

from retrieval.database.parameters import vector_text
from retrieval.ports import Vector
from retrieval.tables.cases import case_embeddings
from retrieval.tables.profiles import profiles


def as_text(vector: Vector) -> str:
    """Returns the vector as Postgres writes an array; to encode a list of numbers takes thirty times as long."""
    numbers = vector_text(np.ascontiguousarray(vector, dtype=np.float32))
    return f"{{{numbers[1:-1]}}}"


def stored(vector: Vector) -> ColumnElement[Sequence[float]]:
    """Returns the vector as an SQL value for ``case_embeddings.embedding``, with or without pgvector."""
    return cast(literal(as_text(vector), Text), ARRAY(REAL))


def stored_later(name: str) -> ColumnElement[Sequence[float]]:
    """Returns the SQL value for a vector whose ``as_text`` is the parameter of this name when the statement is run."""
    return cast(bindparam(name, type_=Text), ARRAY(REAL))


def add_vector(user_sub: str, agent_key: str, model: str, dimension: int) -> Insert:
    """Returns a statement that inserts the vector of a case; its parameters are ``case_id`` and ``vector``, a text.

    The vector joins the HNSW index if the profile's other vectors are in it, so the caller must hold the profile's lock
    until the vector is stored. (INSERT … SELECT, because a shard of a cluster takes no subquery among VALUES.)
    """
    values = {
        "user_sub": profiles.c.user_sub,
        "agent_key": profiles.c.agent_key,
        "model": literal(model),
        "case_id": bindparam("case_id", type_=Uuid),
        "dimension": literal(dimension),
        "embedding": stored_later("vector"),  # an array fits the column whether or not it is pgvector's
        "approximate": profiles.c.approximate,
    }
    mine = select(*values.values()).where(profiles.c.user_sub == user_sub, profiles.c.agent_key == agent_key)
    return insert(case_embeddings).from_select(list(values), mine)
