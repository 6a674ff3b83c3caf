"""Routes for checkpoints: states of a backend's graphs, by thread, kept as they are given."""

import asyncio
from bisect import bisect
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from itertools import accumulate
from typing import Annotated
from uuid import UUID

from fastapi import Query
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field

from app.edge.dependencies import Agent, Caller, Parts
from app.edge.routers import api_router
from retrieval.database.rows import AnyRow
from retrieval.pages.checkpoints import page_of_checkpoints, parts_of_checkpoints
from writer.checkpoints import (
    MOST_BYTES,
    CheckpointWritten,
    Namespace,
    ThreadId,
    delete_thread,
    hashes,
    write_checkpoint,
)
from writer.privacy.words import Words


class CheckpointPartOut(BaseModel):
    """The state of a checkpoint, or a write that is pending on it."""

    task_id: str = Field(description="task of a pending write; empty: this part is the state")
    place: int
    value: str = Field(description="value as the backend sent it")


class CheckpointOut(BaseModel):
    """One checkpoint; ``parts`` holds its state, and after it the writes pending on it."""

    thread_id: str
    namespace: str
    checkpoint_id: UUID
    created_at: datetime
    parts: list[CheckpointPartOut]


class CheckpointsOut(BaseModel):
    """One page of checkpoints, by falling id."""

    checkpoints: list[CheckpointOut]
    next_cursor: str | None


router = api_router("checkpoints", "/v1/checkpoints")


@router.put("", status_code=204)
async def put_checkpoint(written: CheckpointWritten, parts: Parts, caller: Caller) -> None:
    """Stores a checkpoint's state, or writes that are pending on it, and answers once they are on disk.

    Values are encrypted with the user's key; they are not redacted, searched, embedded or shown in a context.
    """
    await parts.admission.of_agent(caller, "writes", written.agent)
    await write_checkpoint(parts.database, parts.keyring, written, caller)


@router.get("")
async def list_checkpoints(  # noqa: PLR0913, PLR0917 - each is a query parameter
    parts: Parts,
    caller: Caller,
    agent: Agent,
    thread_id: Annotated[ThreadId | None, Query()] = None,
    namespace: Annotated[
        Namespace | None, Query(description="namespace within the graph; empty: the main graph; left out: all")
    ] = None,
    checkpoint_id: Annotated[UUID | None, Query()] = None,
    before: Annotated[UUID | None, Query(description="only checkpoints with a smaller id")] = None,
    limit: Annotated[int, Query(ge=1, le=20)] = 10,
    cursor: Annotated[str | None, Query(max_length=80, description="next_cursor of the previous page")] = None,
) -> CheckpointsOut:
    """Returns a page of checkpoints, the one with the largest id first, each with the writes pending on it."""
    after = None
    if cursor is not None:
        try:
            checkpoint, row = map(UUID, cursor.split("."))
        except ValueError:
            problem = {"loc": ("query", "cursor"), "msg": "no next_cursor of this list", "type": "value_error"}
            raise RequestValidationError([problem]) from None
        after = checkpoint, row
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        words = await parts.keyring.find(connection, caller.user_sub)
        if words is None:
            return CheckpointsOut(checkpoints=[], next_cursor=None)
        only = {"agent_key": agent, "checkpoint_id": checkpoint_id, **hashes(words, thread_id, namespace)}
        page = page_of_checkpoints(caller.user_sub, only, before=before, after=after, limit=limit)
        states = (await connection.execute(page)).all()
        # a page has no more bytes than the largest checkpoint: it may end before the limit
        fitting = states[: max(1, bisect([*accumulate(state.size for state in states)], MOST_BYTES))]
        of_these = parts_of_checkpoints(caller.user_sub, agent, fitting)
        rows = (await connection.execute(of_these)).all() if fitting else []
    shown = await asyncio.to_thread(_shown, words, fitting, rows)
    ends = len(fitting) == len(states) < limit
    return CheckpointsOut(
        checkpoints=shown, next_cursor=None if ends else f"{fitting[-1].checkpoint_id}.{fitting[-1].id}"
    )


@router.delete("", status_code=204)
async def remove_thread(parts: Parts, caller: Caller, agent: Agent, thread_id: Annotated[ThreadId, Query()]) -> None:
    """Deletes all checkpoints of a thread permanently; a thread that is not there is no error."""
    await delete_thread(parts.database, parts.keyring, agent, thread_id, caller)


def _shown(words: Words, states: Sequence[AnyRow], rows: Sequence[AnyRow]) -> list[CheckpointOut]:
    parts: dict[tuple[bytes, bytes, UUID], list[AnyRow]] = defaultdict(list)
    for row in rows:
        parts[row.thread, row.namespace, row.checkpoint_id].append(row)
    shown = []
    for state in states:
        of_state = parts[state.thread, state.namespace, state.checkpoint_id]
        if not of_state or of_state[0].task:  # the state was deleted while the page was read
            continue
        opened = [(row.place, words.open("checkpoint", row.words, row.id)) for row in of_state]
        kept = [CheckpointPartOut(task_id=text["task_id"], place=place, value=text["value"]) for place, text in opened]
        names = {name: opened[0][1][name] for name in ("thread_id", "namespace")}
        shown.append(CheckpointOut(**names, checkpoint_id=state.checkpoint_id, created_at=state.created_at, parts=kept))
    return shown
