"""Sessions: a conversation turn by turn, and as much of it as a budget holds."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Header, Path, Query

from app.edge.dependencies import Caller, Parts
from app.edge.intake.route import BodyRoute
from app.edge.problems import DOCUMENTED, raises
from app.schemas.loop import RedactionOut
from app.schemas.sessions import (
    SessionOut,
    SessionsOut,
    SummaryItemOut,
    TurnOut,
    TurnsAppendedOut,
    WholeSessionOut,
)
from retrieval.errors import NotFound
from retrieval.pages import listing
from retrieval.sections.context import count_tokens
from writer.errors import IdempotencyConflict, SecretInName, TurnsOutOfOrder, UnknownReference
from writer.privacy.seal import PayloadTooLarge
from writer.run import AgentKey, SessionName
from writer.sessions.append import append_turns
from writer.sessions.locked import delete_session
from writer.sessions.told import TurnsDraft

router = APIRouter(prefix="/v1/sessions", tags=["sessions"], responses=DOCUMENTED, route_class=BodyRoute)

SessionId = Annotated[SessionName, Path(description="of the backend's choice, for the user")]
IdempotencyKey = Annotated[
    str | None,
    Header(min_length=1, max_length=255, description="in one session the same key with the same turns adds them once"),
]


@router.post(
    "/{session_id}/turns",
    responses=raises(IdempotencyConflict, TurnsOutOfOrder, UnknownReference, SecretInName, PayloadTooLarge),
)
async def tell_turns(
    session_id: SessionId, draft: TurnsDraft, parts: Parts, caller: Caller, idempotency_key: IdempotencyKey = None
) -> TurnsAppendedOut:
    """Adds turns to a session and answers once they are on disk; the first call for a name begins the session.

    A turn that is earlier than the one before it, or in future, is a 409, and nothing of that call is kept.
    """
    await parts.admission.of_agent(caller, "writes", draft.agent_key)
    added = await append_turns(parts.database, parts.keyring, session_id, draft, caller, idempotency_key)
    parts.worker.wake()
    return TurnsAppendedOut(
        session_id=session_id,
        first=added.first,
        last=added.last,
        turn_count=added.turn_count,
        redactions=[RedactionOut(kind=each.kind, count=each.count) for each in added.redactions],
    )


@router.get("")
async def list_sessions(
    parts: Parts,
    caller: Caller,
    agent: Annotated[AgentKey | None, Query()] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    cursor: Annotated[UUID | None, Query(description="next_cursor of the page before")] = None,
) -> SessionsOut:
    """Returns the sessions that were begun last, a page at a time."""
    statement = listing.page_of_sessions(caller.user_sub, agent, before=cursor, limit=limit)
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        rows = (await connection.execute(statement)).mappings().all()
    shown = [SessionOut.model_validate({**row, "session_id": row["name"], "agent": row["agent_key"]}) for row in rows]
    return SessionsOut(sessions=shown, next_cursor=str(rows[-1]["id"]) if len(rows) == limit else None)


@router.get("/{session_id}")
async def get_session(
    session_id: SessionId,
    parts: Parts,
    caller: Caller,
    token_budget: Annotated[int, Query(ge=0, le=100_000)] = 2_000,
) -> WholeSessionOut:
    """Returns the newest turns that fit the budget, and what was said before them, by rule or by a model."""
    view = await parts.reader.session(caller.user_sub, caller.authorised_at, session_id, token_budget)
    if view is None:
        raise NotFound("no such session")
    return WholeSessionOut(
        session_id=session_id,
        agent=view.agent_key,
        turn_count=view.turn_count,
        last_turn_at=view.last_turn_at,
        created_at=view.created_at,
        turns=[
            TurnOut.model_validate({**turn.message, "number": turn.number, "time": turn.said_at}) for turn in view.turns
        ],
        summary=[
            SummaryItemOut(turn=item.number, kind=item.kind, role=item.role, text=item.text, by=item.by)
            for item in view.items
        ],
        summary_by=view.summary_by,
        left_out=view.left_out,
        tokens=sum(count_tokens(turn.text) for turn in view.turns)
        + sum(count_tokens(item.line) for item in view.items),
    )


@router.delete("/{session_id}", status_code=204)
async def remove_session(session_id: SessionId, parts: Parts, caller: Caller) -> None:
    """Deletes a session for good, with its turns and the facts that were first told there.

    The runs that were a part of it stay, with the turns they took.
    """
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        await delete_session(connection, caller, session_id)
