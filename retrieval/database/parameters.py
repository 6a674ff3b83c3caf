"""Parameters that statements of the fast path share, and the part of such a statement that enters as a user."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

import numpy as np
import orjson
from numpy.typing import NDArray
from pgvector.sqlalchemy import Vector
from sqlalchemy import (
    ARRAY,
    CTE,
    Boolean,
    ColumnClause,
    ColumnElement,
    DateTime,
    TableValuedAlias,
    Text,
    and_,
    bindparam,
    cast,
    func,
    select,
)
from sqlalchemy.types import TypeEngine

from retrieval.database.rows import Expression

USER_SUB = bindparam("user_sub", type_=Text)
AGENT_KEY = bindparam("agent_key", type_=Text)
MODEL = bindparam("model", type_=Text)


T = TypeVar("T")


def parameter(name: str, kind: TypeEngine[T] | type[TypeEngine[T]]) -> ColumnElement[T]:
    """Returns the parameter of this name, cast to its type, which Postgres cannot always tell from its place."""
    return cast(bindparam(name, type_=kind), kind)


def given_rows(columns: Mapping[str, ColumnClause[Any]], name: str, *, numbered: str | None = None) -> TableValuedAlias:
    """Returns a table whose columns are given as arrays, each by the parameter of its name in ``columns``.

    ``numbered``: the name of a further column with the row's number, from 1.
    """
    arrays = func.unnest(*(parameter(each, ARRAY(column.type)) for each, column in columns.items()))
    return arrays.table_valued(*columns.values(), with_ordinality=numbered, name=name).render_derived()


def vector() -> Expression:
    """Returns the parameter of a statement for pgvector that takes the query's vector, as ``vector_text`` writes it."""
    return cast(parameter("vector", Text), Vector)


def vector_text(vector: Sequence[float] | NDArray[np.float32]) -> str:
    """Returns a vector as the text of its numbers; the driver would ask each number of a list whether it is a list."""
    return orjson.dumps(vector, option=orjson.OPT_SERIALIZE_NUMPY).decode()


@cache
def entered(*, relaxed: bool = False) -> CTE:
    """Returns the part of a statement that enters as a user: a CTE of one row, to read before any other row.

    Its parameters are ``user_sub`` and ``authorised_at``. A relaxed statement does not wait for the disk when it
    commits: a crash may lose the writes of the last moments, so only writes that were promised to no caller may be
    relaxed.
    """
    enter = func.casebank_enter(
        bindparam("user_sub", type_=Text), bindparam("authorised_at", type_=DateTime(timezone=True)), type_=Boolean
    )
    relax = func.set_config("synchronous_commit", "off", True).is_not(None)
    return (
        select((and_(enter, relax) if relaxed else enter).label("entered")).cte("entered").prefix_with("MATERIALIZED")
    )


def may_enter() -> ColumnElement[bool]:
    """Returns a condition for a statement's outermost WHERE that enters as the user before the first row is read.

    Postgres evaluates a subquery that needs no row before all other conditions there. Farther inside, a join might read
    its other side first, and row-level security would hide every row of that side.
    """
    return select(entered().c.entered).scalar_subquery()
