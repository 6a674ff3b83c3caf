"""Runs under way: an agent's steps as it takes them, so that a run that dies is not lost."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Query
from sqlalchemy import RowMapping

from app.edge.dependencies import Caller, Parts
from app.edge.intake.route import BodyRoute
from app.edge.problems import DOCUMENTED, raises
from app.schemas.loop import RedactionOut
from app.schemas.runs import AppendedOut, RunOut, RunsOut, WholeRunOut
from retrieval.errors import NotFound
from retrieval.pages import listing
from retrieval.tables.kinds import RunStatus
from writer.errors import IdempotencyConflict, RunEnded, SecretInName, UnknownReference
from writer.privacy.seal import PayloadTooLarge
from writer.privacy.words import Words
from writer.retain.steps import StepsDraft, append_steps
from writer.run import AgentKey

router = APIRouter(prefix="/v1/runs", tags=["runs"], responses=DOCUMENTED, route_class=BodyRoute)

RunId = Annotated[
    UUID, Path(description="of the backend's choice, for the user; a UUID of version 7 keeps lists in order")
]


@router.post(
    "/{run_id}/steps", responses=raises(IdempotencyConflict, RunEnded, UnknownReference, SecretInName, PayloadTooLarge)
)
async def tell_steps(run_id: RunId, draft: StepsDraft, parts: Parts, caller: Caller) -> AppendedOut:
    """Adds steps to a run and answers once they are on disk; the first call for an id begins the run.

    A step that is sent again, under its number, is the same step; another one under that number is a 409. A retain with
    `run_id` ends the run. One that goes silent is ended as `aborted`, which teaches nothing and credits nobody; a
    further step, or a retain, takes that back.
    """
    await parts.admission.of_agent(caller, "writes", draft.agent_key)
    appended = await append_steps(parts.database, parts.keyring, run_id, draft, caller)
    redactions = [RedactionOut(kind=each.kind, count=each.count) for each in appended.redactions]
    return AppendedOut(run_id=run_id, status=appended.status, step_count=appended.step_count, redactions=redactions)


@router.get("")
async def list_runs(  # noqa: PLR0913, PLR0917 - each is a query parameter
    parts: Parts,
    caller: Caller,
    agent: Annotated[AgentKey | None, Query()] = None,
    status: Annotated[RunStatus | None, Query()] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    cursor: Annotated[UUID | None, Query(description="next_cursor of the page before")] = None,
) -> RunsOut:
    """Returns the runs under way, and those that ended lately, a page at a time."""
    statement = listing.page_of_runs(
        caller.user_sub, {"agent_key": agent, "status": status}, before=cursor, limit=limit
    )
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        rows = (await connection.execute(statement)).mappings().all()
        key = await parts.keyring.find(connection, caller.user_sub) if rows else None
    shown = [RunOut.model_validate(_shown(row, Words(caller.user_sub, key))) for row in rows if key is not None]
    return RunsOut(runs=shown, next_cursor=str(rows[-1]["id"]) if len(rows) == limit else None)


@router.get("/{run_id}")
async def get_run(run_id: RunId, parts: Parts, caller: Caller) -> WholeRunOut:
    """Returns one run with its steps."""
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        row = (await connection.execute(listing.one_run(caller.user_sub, run_id))).mappings().one_or_none()
        steps = (await connection.execute(listing.steps_of_run(caller.user_sub, run_id))).all()
        key = await parts.keyring.find(connection, caller.user_sub)
    if row is None or key is None:
        raise NotFound("no such run")
    words = Words(caller.user_sub, key)
    opened = [{"number": step.number, **words.open_step(run_id, step.number, step.payload)} for step in steps]
    return WholeRunOut.model_validate({**_shown(row, words), "steps": opened})


def _shown(row: RowMapping, words: Words) -> dict[str, object]:
    """Returns the columns of a run under the names of the API, with its words opened."""
    columns = {name: value for name, value in row.items() if name not in {"id", "agent_key", "words"}}
    return {"run_id": row["id"], "agent": row["agent_key"], "task": words.open_run(row["id"], row["words"]), **columns}
