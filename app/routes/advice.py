"""The route for advice at a failed call."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from sqlalchemy import Row

from app.edge.dependencies import Caller, Parts
from app.edge.routers import api_router
from app.runtime import Runtime
from app.schemas.advice import MOST_TRIED, AdviceIn, AdviceOut
from app.schemas.responses import response_of
from retrieval.database.rows import Rows
from retrieval.pages import listing
from writer.advice.answer import FailedCall, first_like
from writer.analysis.calls import Call, calls_in
from writer.author import Author
from writer.messages import Turn, tool_traces
from writer.privacy.words import Words, readable

router = api_router("the loop")

MOST_TURNS = 2 * MOST_TRIED
"""Number of a session's newest turns whose calls count as tried; a call and its output are two turns."""


@router.post("/v1/advice")
async def advise(failed: AdviceIn, parts: Parts, caller: Caller) -> AdviceOut:
    """Returns the fixes of similar failures in earlier runs of the agent, or the reason why there are none.

    A fix is returned only if the bank's earlier failures show that such fixes are right. The answer is logged as a
    decision; once the run is retained, casebank counts whether the failure came back.
    """
    await parts.admission.of_agent(caller, "reads", failed.agent)
    told = calls_in([failed.model_dump(), *(each.model_dump() for each in failed.tried)])
    call, tried = first_like(told[0], [*await _calls_of_session(failed, parts, caller), *told])
    asked = FailedCall(
        failed.agent,
        call,
        failed.task or "",
        failed.run_id,
        failed.retrieval_id,
        failed.session_id,
        tried,
        failed.precision,
        failed.token_budget,
        failed.plans,
    )
    return response_of(AdviceOut, await parts.adviser.advise(caller, asked))


async def _calls_of_session(failed: AdviceIn, parts: Runtime, caller: Author) -> list[Call]:
    """Returns the calls in the session's newest turns that no run has taken; none for a run, whose steps are known."""
    if failed.session_id is None or failed.run_id is not None:
        return []
    newest = listing.turns_to_come(caller.user_sub, failed.agent, failed.session_id, MOST_TURNS)
    turns = await decrypted(
        parts, caller, newest, lambda words, row: words.open("turn", row.payload, row.session_id, row.number)
    )
    return calls_in(tool_traces(map(Turn.model_validate, reversed(turns))))


async def decrypted(
    parts: Runtime, caller: Author, statement: Rows, opened: Callable[[Words, Row[Any]], dict[str, Any]]
) -> list[dict[str, Any]]:
    """Returns the caller's rows that the statement selects, those that decrypt, each as ``opened`` returns it."""
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        rows = (await connection.execute(statement)).all()
        words = await parts.keyring.find(connection, caller.user_sub) if rows else None
    # in a thread, because these may be megabytes
    return [] if words is None else await asyncio.to_thread(list, readable(partial(opened, words), rows))
