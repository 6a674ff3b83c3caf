"""Routes for runs in progress: an agent's steps are stored one by one, so a run that dies is kept."""

import asyncio
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import Path, Query
from pydantic import BaseModel, Field, JsonValue, SkipValidation
from sqlalchemy import Row, RowMapping

from app.edge.dependencies import AnyAgent, Caller, Cursor, Limit, Parts
from app.edge.intake.reading import MadeFrom
from app.edge.routers import api_router
from app.routes.advice import calls_of
from app.runtime import Runtime
from app.schemas.advice import MOST_TRIED, AdviceOut
from app.schemas.loop import RedactionOut
from app.schemas.responses import RowOut, next_cursor, response_of
from retrieval.errors import CasebankError, NotFound
from retrieval.pages import listing
from retrieval.tables.kinds import RunStatus
from retrieval.tables.runs import runs
from retrieval.telemetry import log
from writer.advice.answer import FailedCall, first_like
from writer.author import Author
from writer.privacy.words import Words, readable
from writer.retain.steps import PreparedSteps, StepsTaken, append_steps, prepare_steps
from writer.rights.edit import delete_run


class AppendedOut(BaseModel):
    """The acknowledgement: the steps are on disk."""

    run_id: UUID
    status: RunStatus
    step_count: int = Field(description="number of steps of the run, including those of this call")
    redactions: list[RedactionOut]
    advice: AdviceOut | None = Field(
        default=None, description="advice for the last of these steps that failed; null: none failed"
    )


class RunOut(RowOut):
    """A run whose steps are sent one by one, in progress or ended."""

    run_id: UUID = Field(validation_alias="id")
    agent: str = Field(validation_alias="agent_key")
    status: RunStatus
    task: str
    retrieval_id: UUID | None
    step_count: int
    last_step_at: datetime
    ended_at: datetime | None
    case_id: UUID | None = Field(description="case of the run; null: the run is in progress, or its case was deleted")
    created_at: datetime


class WholeRunOut(RunOut):
    """A run with its steps in order; no steps once it is retained: its case has them."""

    steps: SkipValidation[list[dict[str, JsonValue]]]  # it takes seconds for 16 MB


class RunsOut(BaseModel):
    """One page of runs, by falling id."""

    runs: list[RunOut]
    next_cursor: str | None


router = api_router("runs", "/v1/runs")

RunId = Annotated[
    UUID, Path(description="id chosen by the backend, unique for the user; UUIDs of version 7 keep lists in order")
]


@router.post("/{run_id}/steps")
async def tell_steps(
    run_id: RunId, steps: Annotated[PreparedSteps, MadeFrom(StepsTaken, prepare_steps)], parts: Parts, caller: Caller
) -> AppendedOut:
    """Adds steps to a run and answers once they are on disk; the first call for an id starts the run.

    A repeated step with the same number is stored once; another step with that number gets a 409. A retain with
    `run_id` ends the run. A run that gets no step for long (by default two hours) is ended as `aborted`: it teaches
    nothing and credits no case. A further step or a retain takes that back.
    """
    await parts.admission.of_agent(caller, "writes", steps.agent_key)
    appended = await append_steps(parts.database, parts.keyring, run_id, steps, caller)
    return response_of(AppendedOut, appended, run_id=run_id, advice=await _advice(run_id, steps, parts, caller))


async def _advice(run_id: UUID, steps: PreparedSteps, parts: Runtime, caller: Author) -> AdviceOut | None:
    """Returns the advice for the last step that failed; None if none did, or if advice cannot be had.

    The steps are on disk by then, so no error here may fail the request. Where the run met the same
    failure before, the advice is about the first of these calls, and every later one was tried since.
    """
    calls, first = steps.calls, min(step.number for step in steps.steps)
    failed = next((call for call in reversed(calls) if call.failed), None)
    if failed is None:
        return None

    def opened(words: Words, rows: Iterable[Row[Any]]) -> Iterable[object]:
        return readable(lambda row: words.open("step", row.payload, run_id, row.number), rows)

    try:
        if numbers := range(max(1, first - MOST_TRIED), first):
            before = listing.steps_of_run(caller.user_sub, run_id, numbers)
            calls = [*await calls_of(parts, caller, before, opened), *calls]
        call, tried = await asyncio.to_thread(first_like, failed, calls)
        asked = FailedCall(steps.agent_key, call, steps.task, run_id, steps.retrieval_id, tried=tried)
        return response_of(AdviceOut, await parts.adviser.advise(caller, asked))
    except CasebankError as error:
        log.warning("advice.failed", error=type(error).__name__)
        return None


@router.get("")
async def list_runs(  # noqa: PLR0913, PLR0917 - each is a query parameter
    parts: Parts,
    caller: Caller,
    agent: AnyAgent = None,
    status: Annotated[RunStatus | None, Query()] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> RunsOut:
    """Returns a page of runs: those in progress, and those that ended recently."""
    only = {"agent_key": agent, "status": status}
    statement = listing.page_of(runs, caller.user_sub, only, before=cursor, limit=limit)
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        rows = (await connection.execute(statement)).mappings().all()
        words = await parts.keyring.find_for_page(connection, caller.user_sub) if rows else None
    shown = [RunOut.model_validate(_shown(row, words)) for row in rows if words is not None]
    return RunsOut(runs=shown, next_cursor=next_cursor(rows, limit))


@router.get("/{run_id}")
async def get_run(run_id: RunId, parts: Parts, caller: Caller) -> WholeRunOut:
    """Returns one run with its steps."""
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        row = (await connection.execute(listing.one_of(runs, caller.user_sub, run_id))).mappings().one_or_none()
        steps = (await connection.execute(listing.steps_of_run(caller.user_sub, run_id))).all()
        words = await parts.keyring.find_for_page(connection, caller.user_sub)
    if row is None or words is None:
        raise NotFound("no such run")
    each = ({"number": step.number, **words.open("step", step.payload, run_id, step.number)} for step in steps)
    opened = await asyncio.to_thread(list, each)  # these may be megabytes
    return WholeRunOut.model_validate({**_shown(row, words), "steps": opened})


@router.delete("/{run_id}", status_code=204)
async def remove_run(run_id: RunId, parts: Parts, caller: Caller) -> None:
    """Deletes a run permanently, with its steps and findings; the case that it became stays."""
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        await delete_run(connection, caller, run_id)


def _shown(row: RowMapping, words: Words) -> dict[str, object]:
    return {**row, "task": words.open_run(row["id"], row["words"])}
