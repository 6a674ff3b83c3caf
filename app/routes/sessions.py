"""Routes for sessions: conversations turn by turn, read within a token budget."""

from datetime import datetime
from typing import Annotated

from fastapi import Header, Path, Query
from pydantic import BaseModel, Field, JsonValue

from app.edge.dependencies import AnyAgent, Caller, Cursor, Limit, Parts
from app.edge.intake.reading import MadeFrom
from app.edge.routers import api_router
from app.schemas.loop import RedactionOut
from app.schemas.responses import RowOut, next_cursor, response_of
from retrieval.errors import NotFound
from retrieval.pages import listing
from retrieval.sessions.summary import ItemKind
from retrieval.tables.kinds import SummaryChoice
from retrieval.tables.sessions import sessions
from retrieval.tokens import count_tokens
from writer.run import SessionName
from writer.sessions.append import append_turns
from writer.sessions.lock import delete_session
from writer.sessions.prepare import PreparedTurns, TurnsTold, prepare_turns


class TurnsAppendedOut(BaseModel):
    """The acknowledgement: the turns are on disk."""

    session_id: str
    first: int = Field(description="1-based number of the first turn of this call in the session")
    last: int
    turn_count: int = Field(description="number of turns in the session")
    redactions: list[RedactionOut]
    warnings: list[str] = Field(default_factory=list, description="parts of the turns that are kept and not read")


class TurnOut(BaseModel):
    """A turn of a session, without secrets."""

    number: int
    time: datetime
    role: str
    content: JsonValue = None
    name: str | None = None
    tool_calls: list[dict[str, JsonValue]] | None = None
    tool_call_id: str | None = None
    refusal: JsonValue = None
    is_error: bool | None = None


class SummaryItemOut(BaseModel):
    """A summary line about a turn that is not shown: a quotation, or a language model's words."""

    turn: int
    kind: ItemKind
    role: str
    text: str
    by: SummaryChoice = Field(description="rules: a quotation; llm: a language model's words")


class SessionOut(RowOut):
    """A session."""

    session_id: str = Field(validation_alias="name")
    agent: str = Field(validation_alias="agent_key")
    turn_count: int
    last_turn_at: datetime
    created_at: datetime


class WholeSessionOut(SessionOut):
    """A session as far as it fits the token budget."""

    turns: list[TurnOut] = Field(description="newest turns that fit the budget, in order of time")
    summary: list[SummaryItemOut] = Field(
        description="summary of the earlier turns: requests, decisions, names, commands and values; at most a quarter "
        "of the budget, and at most what the turns leave of it"
    )
    summary_by: SummaryChoice = Field(
        description="llm: a language model summarised some of those turns, as the profile asks; rules: quotations only"
    )
    left_out: int = Field(description="number of turns that are not in `turns`")
    tokens: int = Field(description="estimated tokens of turns and summary together")


class SessionsOut(BaseModel):
    """One page of sessions, the newest first."""

    sessions: list[SessionOut]
    next_cursor: str | None


router = api_router("sessions", "/v1/sessions")

SessionId = Annotated[
    SessionName, Path(description="id chosen by the backend, unique for the user; it may contain slashes")
]
IdempotencyKey = Annotated[
    str | None,
    Header(min_length=1, max_length=255, description="a repeated key with the same turns of a session adds them once"),
]


@router.post("/{session_id:path}/turns")
async def tell_turns(
    session_id: SessionId,
    turns: Annotated[PreparedTurns, MadeFrom(TurnsTold, prepare_turns)],
    parts: Parts,
    caller: Caller,
    idempotency_key: IdempotencyKey = None,
) -> TurnsAppendedOut:
    """Adds turns to a session and answers once they are on disk; the first call for an id starts the session.

    A turn that is earlier than the previous one, or in the future, gets a 409, and no turn of that call is stored.
    """
    await parts.admission.of_agent(caller, "writes", turns.agent_key)
    added = await append_turns(parts.database, parts.keyring, session_id, turns, caller, idempotency_key)
    parts.worker.wake()
    return response_of(TurnsAppendedOut, added, session_id=session_id)


@router.get("")
async def list_sessions(
    parts: Parts, caller: Caller, agent: AnyAgent = None, limit: Limit = 50, cursor: Cursor = None
) -> SessionsOut:
    """Returns a page of sessions, the newest first."""
    statement = listing.page_of(sessions, caller.user_sub, {"agent_key": agent}, before=cursor, limit=limit)
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        rows = (await connection.execute(statement)).mappings().all()
    return SessionsOut(sessions=list(map(SessionOut.model_validate, rows)), next_cursor=next_cursor(rows, limit))


@router.get("/{session_id:path}")
async def get_session(
    session_id: SessionId, parts: Parts, caller: Caller, token_budget: Annotated[int, Query(ge=0, le=100_000)] = 2_000
) -> WholeSessionOut:
    """Returns the newest turns that fit the budget, and a summary of the earlier ones, by rules or by a model."""
    view = await parts.reader.session(caller.user_sub, caller.authorised_at, session_id, token_budget)
    if view is None:
        raise NotFound("no such session")
    return response_of(
        WholeSessionOut,
        view,
        session_id=session_id,
        agent=view.agent_key,
        turns=[
            TurnOut.model_validate({**turn.message, "number": turn.number, "time": turn.said_at}) for turn in view.turns
        ],
        summary=[response_of(SummaryItemOut, item, turn=item.number) for item in view.items],
        tokens=sum(count_tokens(turn.text) for turn in view.turns)
        + sum(count_tokens(item.line) for item in view.items),
    )


@router.delete("/{session_id:path}", status_code=204)
async def remove_session(session_id: SessionId, parts: Parts, caller: Caller) -> None:
    """Deletes a session permanently, with its turns and the facts first stated in it.

    Runs of the session stay, with the turns they contain.
    """
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        await delete_session(connection, caller, session_id)
