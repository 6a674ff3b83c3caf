"""Responses about sessions: the acknowledgement of new turns, one session within a token budget, and a page."""

from datetime import datetime

from pydantic import BaseModel, Field, JsonValue

from app.schemas.loop import RedactionOut
from retrieval.sessions.summary import ItemKind
from retrieval.tables.kinds import SummaryChoice


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


class SessionOut(BaseModel):
    """A session."""

    session_id: str
    agent: str
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
