"""Runs under way: runs whose steps are sent one by one; a retain ends such a run and makes a case of the run.

A run without new steps for a long time is ended as aborted (``writer.upkeep.silent_runs``). If new steps come
afterwards, the case of the aborted run is deleted.
"""

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from prometheus_client import Counter
from sqlalchemy import Row, delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.pages.listing import steps_of_run
from retrieval.tables.cases import cases
from retrieval.tables.columns import ALL_AGENTS
from retrieval.tables.decisions import decisions
from retrieval.tables.kinds import RunStatus
from retrieval.tables.profiles import profiles
from retrieval.tables.runs import run_steps, runs
from writer.audit import note
from writer.author import Author
from writer.privacy.words import Words
from writer.references import clear_references

ENDED = Counter("casebank_runs_ended_total", "Runs whose steps were sent one by one, by how they ended", ["status"])
for _status in ("retained", "aborted"):
    ENDED.labels(_status)  # so that an increase is seen from the first


UnderWay = Row[*tuple[Any, ...]]
"""The row of a run under way, as ``lock_run`` reads it."""


async def lock_run(connection: AsyncConnection, user_sub: str, run_id: UUID) -> UnderWay | None:
    """Returns the run, locked until the transaction ends; None: the user has no such run.

    It has the retrieval that the run began with as ``known_retrieval_id``, None without a known one, and the
    ``tool_kinds`` of the agent's profile.
    """
    known = (
        select(decisions.c.id)
        .where(
            decisions.c.user_sub == user_sub,
            decisions.c.id == runs.c.retrieval_id,
            decisions.c.agent_key.in_([runs.c.agent_key, ALL_AGENTS]),
        )
        .scalar_subquery()
        .label("known_retrieval_id")
    )
    profile = profiles.c.user_sub == user_sub, profiles.c.agent_key == runs.c.agent_key
    kinds = select(profiles.c.tool_kinds).where(*profile).scalar_subquery().label("tool_kinds")
    names = ("id", "agent_key", "status", "step_count", "step_bytes", "last_step_at", "case_id")
    mine = select(*(runs.c[name] for name in names), known, kinds).where(
        runs.c.user_sub == user_sub, runs.c.id == run_id
    )
    return (await connection.execute(mine.with_for_update(of=runs))).one_or_none()


async def traces_of(connection: AsyncConnection, words: Words, run_id: UUID) -> Sequence[dict[str, Any]]:
    """Returns the tool traces of the run's steps, in their order.

    Raises:
        SealBroken: a step was encrypted with another key, or was changed.
    """
    rows = (await connection.execute(steps_of_run(words.user_sub, run_id))).all()
    opened = (words.open("step", row.payload, run_id, row.number) for row in rows)
    return await asyncio.to_thread(list, opened)  # may be 16 MB, or 10,000 steps


async def take_back(connection: AsyncConnection, author: Author, run: UnderWay) -> None:
    """Deletes the case that an aborted run became, because a new step came; does nothing for other runs."""
    if run.status != "aborted" or run.case_id is None:
        return
    await clear_references(cases, connection, author.user_sub, [run.case_id])
    await connection.execute(delete(cases).where(cases.c.user_sub == author.user_sub, cases.c.id == run.case_id))
    await note(connection, author.change(run.agent_key, "delete_case", run.case_id, why="its run goes on"))


async def end(connection: AsyncConnection, author: Author, run: UnderWay, case_id: UUID, status: RunStatus) -> None:
    """Ends a run: links it to the case that its steps became, and notes the end in the audit.

    The steps of a retained run are deleted; the steps of an aborted run stay, because the run may go on.
    """
    await take_back(connection, author, run)
    mine = runs.c.user_sub == author.user_sub, runs.c.id == run.id
    await connection.execute(update(runs).where(*mine).values(status=status, case_id=case_id, ended_at=func.now()))
    if status == "retained":
        steps = run_steps.c.user_sub == author.user_sub, run_steps.c.run_id == run.id
        await connection.execute(delete(run_steps).where(*steps))
    await note(connection, author.change(run.agent_key, "end_run", run.id, status=status, case_id=str(case_id)))
    ENDED.labels(status).inc()
