"""The route for advice at a failed call."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Annotated, Any

from sqlalchemy import Row

from app.edge.dependencies import Caller, Parts
from app.edge.intake.reading import MadeFrom
from app.edge.routers import api_router
from app.runtime import Runtime
from app.schemas.advice import MOST_TRIED, AdviceIn, AdviceOut, failed_call
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
async def advise(
    failed: Annotated[FailedCall, MadeFrom(AdviceIn, failed_call)], parts: Parts, caller: Caller
) -> AdviceOut:
    """Returns the fixes of similar failures in earlier runs of the agent, or the reason why there are none.

    A fix is returned only if the bank's earlier failures show that such fixes are right. The answer is logged as a
    decision; once the run is retained, casebank counts whether the failure came back.
    """
    await parts.admission.of_agent(caller, "reads", failed.agent_key)
    calls = [failed.call, *failed.tried]
    if failed.session is not None and failed.run_id is None:  # the steps of a run are known
        newest = listing.turns_to_come(caller.user_sub, failed.agent_key, failed.session, MOST_TURNS)
        calls = [*await calls_of(parts, caller, newest, _traces_of_turns), *calls]
    call, tried = await asyncio.to_thread(first_like, failed.call, calls)
    return response_of(AdviceOut, await parts.adviser.advise(caller, replace(failed, call=call, tried=tried)))


def _traces_of_turns(words: Words, rows: Sequence[Row[Any]]) -> Iterable[object]:
    """Returns the tool traces in the turns, the newest first in ``rows``; without those that do not decrypt."""
    turns = readable(lambda row: words.open("turn", row.payload, row.session_id, row.number), reversed(rows))
    return tool_traces(map(Turn.model_validate, turns))


async def calls_of(
    parts: Runtime, caller: Author, statement: Rows, traces: Callable[[Words, Sequence[Row[Any]]], Iterable[object]]
) -> list[Call]:
    """Returns the calls in the caller's rows that the statement selects; ``traces`` decrypts the rows."""
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        rows = (await connection.execute(statement)).all()
        words = await parts.keyring.find(connection, caller.user_sub) if rows else None
    # in a thread, because these may be megabytes
    return [] if words is None else await asyncio.to_thread(lambda: calls_in(traces(words, rows)))
