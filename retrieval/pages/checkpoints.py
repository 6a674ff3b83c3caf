"""Statements that read the checkpoints of a backend's graphs."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Integer, func, literal, select, tuple_
from sqlalchemy.sql import ColumnCollection

from retrieval.database.rows import AnyRow, Rows
from retrieval.tables.runs import checkpoints

_NAME = (checkpoints.c.thread, checkpoints.c.namespace, checkpoints.c.checkpoint_id)


def page_of_checkpoints(
    user_sub: str, only: Mapping[str, object], *, before: UUID | None, after: tuple[UUID, UUID] | None, limit: int
) -> Rows:
    """Returns the statement for a page of checkpoints, the highest id first, each with the ``size`` of its parts.

    ``only`` has, by column, the values that a checkpoint must have (None: any value). The ids of checkpoints are below
    ``before``, and on a later page below ``after``, the ids of the previous page's last checkpoint and of its row.
    """
    wanted = [checkpoints.c[name] == value for name, value in only.items() if value is not None]
    if before is not None:
        wanted.append(checkpoints.c.checkpoint_id < before)
    order = checkpoints.c.checkpoint_id, checkpoints.c.id
    if after is not None:
        wanted.append(tuple_(*order) < tuple_(*map(literal, after)))
    part = checkpoints.alias()
    same = [part.c[name] == checkpoints.c[name] for name in ("user_sub", "agent_key", *(each.name for each in _NAME))]
    size = select(func.sum(plain_bytes(part.c))).where(*same).scalar_subquery().label("size")
    return (
        select(*_NAME, checkpoints.c.id, checkpoints.c.created_at, size)
        .where(checkpoints.c.user_sub == user_sub, checkpoints.c.task == b"", *wanted)
        .order_by(*(column.desc() for column in order))
        .limit(limit)
    )


def parts_of_checkpoints(user_sub: str, agent_key: str, states: Sequence[AnyRow]) -> Rows:
    """Returns the statement for the parts of these checkpoints: the states, then the writes as they were stored."""
    mine = checkpoints.c.user_sub == user_sub, checkpoints.c.agent_key == agent_key
    names = [(state.thread, state.namespace, state.checkpoint_id) for state in states]
    return (
        select(*_NAME, *(checkpoints.c[name] for name in ("id", "task", "place", "words")))
        .where(*mine, tuple_(*_NAME).in_(names))
        .order_by(checkpoints.c.task != b"", checkpoints.c.id)
    )


def plain_bytes(part: ColumnCollection[str, ColumnElement[Any]]) -> ColumnElement[int]:
    """Returns the bytes of a part as JSON; those of its sealed words where the size was not stored.

    Sizes are stored since revision 0010, which cannot decrypt older parts. Sealed words are compressed, so an older
    part counts with too few bytes until it is written again: its checkpoint or page may be larger than its bound.
    """
    return func.greatest(part.size, func.octet_length(part.words), type_=Integer)
