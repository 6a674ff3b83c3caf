"""Statements that read the checkpoints of a backend's graphs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from sqlalchemy import literal, select, tuple_

from retrieval.database.rows import AnyRow, Rows
from retrieval.tables.checkpoints import checkpoints

_NAME = (checkpoints.c.thread, checkpoints.c.namespace, checkpoints.c.checkpoint_id)


@dataclass(frozen=True, slots=True)
class CheckpointPage:
    """Filters of a page of at most ``limit`` checkpoints of an agent.

    Attributes:
        hashes: keyed hashes of thread and namespace that the columns of these names must have.
        checkpoint_id: id that the checkpoint must have; None: any.
        before: id below which the checkpoint's id must lie; None: any.
        after: ids of the previous page's last checkpoint and of its row; None: this is the first page.
    """

    agent_key: str
    limit: int
    hashes: Mapping[str, bytes] = field(default_factory=dict)
    checkpoint_id: UUID | None = None
    before: UUID | None = None
    after: tuple[UUID, UUID] | None = None


def page_of_checkpoints(user_sub: str, page: CheckpointPage) -> Rows:
    """Returns the statement for the states of a page of checkpoints, the highest id first."""
    wanted = [checkpoints.c[name] == value for name, value in page.hashes.items()]
    if page.checkpoint_id is not None:
        wanted.append(checkpoints.c.checkpoint_id == page.checkpoint_id)
    if page.before is not None:
        wanted.append(checkpoints.c.checkpoint_id < page.before)
    order = checkpoints.c.checkpoint_id, checkpoints.c.id
    if page.after is not None:
        wanted.append(tuple_(*order) < tuple_(*map(literal, page.after)))
    mine = checkpoints.c.user_sub == user_sub, checkpoints.c.agent_key == page.agent_key
    return (
        select(*_NAME, *(checkpoints.c[name] for name in ("id", "place", "words", "created_at")))
        .where(*mine, checkpoints.c.task == b"", *wanted)
        .order_by(*(column.desc() for column in order))
        .limit(page.limit)
    )


def pending_writes(user_sub: str, agent_key: str, states: Sequence[AnyRow]) -> Rows:
    """Returns the statement for the pending writes of these checkpoints, in the order in which they were stored."""
    mine = checkpoints.c.user_sub == user_sub, checkpoints.c.agent_key == agent_key
    names = [(state.thread, state.namespace, state.checkpoint_id) for state in states]
    return (
        select(*_NAME, *(checkpoints.c[name] for name in ("id", "place", "words")))
        .where(*mine, checkpoints.c.task != b"", tuple_(*_NAME).in_(names))
        .order_by(checkpoints.c.id)
    )
