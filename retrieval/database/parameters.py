"""The parameters that statements of the fast path share, and how such a statement enters as its user."""

from functools import cache

from sqlalchemy import (
    CTE,
    REAL,
    Boolean,
    ColumnElement,
    DateTime,
    Text,
    and_,
    bindparam,
    cast,
    func,
    select,
)
from sqlalchemy.dialects.postgresql import ARRAY

from retrieval.database.rows import Expression

USER_SUB = bindparam("user_sub", type_=Text)
AGENT_KEY = bindparam("agent_key", type_=Text)
MODEL = bindparam("model", type_=Text)


def vector() -> Expression:
    """Returns the query's vector as the statement takes it."""
    return cast(bindparam("vector", type_=ARRAY(REAL)), ARRAY(REAL))


@cache
def entered(*, relaxed: bool = False) -> CTE:
    """Returns the part of a statement that enters as the user: one row, to be read before any other is.

    It takes the parameters ``user_sub`` and ``authorised_at``. A relaxed statement does not wait for the disk
    when it commits: a crash may lose the last moments' writes, so only what nobody was promised goes that way.
    """
    enter = func.casebank_enter(
        bindparam("user_sub", type_=Text),
        bindparam("authorised_at", type_=DateTime(timezone=True)),
        type_=Boolean,
    )
    relax = func.set_config("synchronous_commit", "off", True).is_not(None)
    return (
        select((and_(enter, relax) if relaxed else enter).label("entered")).cte("entered").prefix_with("MATERIALIZED")
    )


def may_enter() -> ColumnElement[bool]:
    """Returns what enters as the user before the first row is read, if it stands in the outermost WHERE.

    A subquery that needs no row is asked before all others there; farther in, a join might read its other side first,
    and row-level security would hide every row of it.
    """
    return select(entered().c.entered).scalar_subquery()
