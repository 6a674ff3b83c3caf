"""Bodies of recall: a question, and the matching memories with their sources."""

from datetime import datetime
from uuid import UUID

from pydantic import BaseModel, Field

from app.schemas.fields import SearchText
from app.schemas.responses import RowOut
from retrieval.recall.memory import KINDS, MOST
from retrieval.tables.kinds import FactKind, MemoryKind, Speaker
from writer.moment import Moment
from writer.run import AgentKey, SessionName, Strict


class RecallIn(Strict):
    """A search over turns, facts and knowledge."""

    agent: AgentKey
    query: SearchText
    top_k: int = Field(default=10, ge=1, le=MOST)
    kinds: list[MemoryKind] = Field(default=list(KINDS), min_length=1, max_length=len(KINDS))
    session_id: SessionName | None = Field(
        default=None, description="session to search for turns; null: all sessions of the agent"
    )
    as_of: Moment | None = Field(
        default=None,
        description="time of the search: turns until then, and facts that held then; null: now",
    )
    token_budget: int = Field(default=2_000, ge=0, le=100_000, description="maximum tokens of all texts together")


class SourceOut(RowOut):
    """The source of a memory: session, number and time of a turn; id and validity of a fact; id of knowledge."""

    session_id: str | None = None
    turn_number: int | None = Field(
        default=None, validation_alias="number", description="1-based number of the turn in the session"
    )
    role: str | None = None
    said_at: datetime | None = None
    fact_id: UUID | None = None
    fact_kind: FactKind | None = Field(default=None, validation_alias="kind")
    said_by: Speaker | None = Field(
        default=None, description="speaker of the fact; only `user` counts as the user's own statement"
    )
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    knowledge_id: UUID | None = None
    category: str | None = Field(default=None, description="category of a knowledge entry")
    type: str | None = Field(default=None, validation_alias="entry_type", description="type of a knowledge entry")
    shared: bool | None = Field(
        default=None, description="true: knowledge that an operator wrote for all users of the agent"
    )


class RecalledMemoryOut(BaseModel):
    """One memory, in its original words."""

    kind: MemoryKind
    text: str
    rank: int
    relevance: float = Field(description="standard deviations above the mean of the memories that were searched")
    similarity: float | None = Field(description="cosine, -1 to 1; null without vectors")
    source: SourceOut


class SessionFoundOut(BaseModel):
    """A session that matches the question."""

    session_id: str
    relevance: float


class RecallOut(BaseModel):
    """Matching memories, the best first."""

    memories: list[RecalledMemoryOut]
    sessions: list[SessionFoundOut] = Field(description="up to five matching sessions, the best first")
    tokens: int = Field(description="estimated tokens of all texts")
    left_out: int = Field(description="number of memories that did not fit the budget")
    degraded: list[str]
