"""The bodies about sessions: what an append is answered with, a session as a budget shows it, and pages of them."""

from datetime import datetime

from pydantic import BaseModel, Field, JsonValue

from app.schemas.loop import RedactionOut
from retrieval.sessions.summary import ItemKind
from retrieval.tables.kinds import SummaryChoice


class TurnsAppendedOut(BaseModel):
    """The acknowledgement: the turns are on disk."""

    session_id: str
    first: int = Field(description="number of the first turn of this call in the session, 1-based")
    last: int
    turn_count: int = Field(description="of the session")
    redactions: list[RedactionOut]


class TurnOut(BaseModel):
    """A turn as it was told, without its secrets."""

    number: int
    time: datetime
    role: str
    content: JsonValue = None
    name: str | None = None
    tool_calls: list[dict[str, JsonValue]] | None = None
    tool_call_id: str | None = None
    refusal: JsonValue = None


class SummaryItemOut(BaseModel):
    """Something that was said in a turn that is not shown: as it was said, or in a language model's words."""

    turn: int
    kind: ItemKind
    role: str
    text: str
    by: SummaryChoice = Field(description="rules: as it was said; llm: as a model tells it")


class SessionOut(BaseModel):
    """A session."""

    session_id: str
    agent: str
    turn_count: int
    last_turn_at: datetime
    created_at: datetime


class WholeSessionOut(SessionOut):
    """A session as far as the budget shows it."""

    turns: list[TurnOut] = Field(description="the newest ones that fit the budget, oldest first")
    summary: list[SummaryItemOut] = Field(
        description="of the turns before those: what was asked, decided and named, commands and values; at most a "
        "quarter of the budget, and what the turns leave of it"
    )
    summary_by: SummaryChoice = Field(
        description="llm: where the profile asks for it, a model told of some of those turns; rules: nobody but them"
    )
    left_out: int = Field(description="how many turns are not among `turns`")
    tokens: int = Field(description="of turns and summary together, as estimated")


class SessionsOut(BaseModel):
    """One page of sessions, the newest first."""

    sessions: list[SessionOut]
    next_cursor: str | None
