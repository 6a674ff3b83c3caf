"""The bodies of recall: a question, and the memories that it is about, each with its source."""

from datetime import datetime
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from app.schemas.fields import SearchText
from retrieval.recall.memory import KINDS, MOST
from retrieval.tables.kinds import FactKind, MemoryKind, Speaker
from writer.moment import Moment
from writer.run import AgentKey, SessionName, Strict


class RecallIn(Strict):
    """What to look for in what was said and what is known."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"agent": "coach", "query": "How much does the user want to save?"}]},
    )

    agent: AgentKey
    query: SearchText
    top_k: int = Field(default=10, ge=1, le=MOST)
    kinds: list[MemoryKind] = Field(default=list(KINDS), min_length=1, max_length=len(KINDS))
    session_id: SessionName | None = Field(default=None, description="of turns those of this session alone")
    as_of: Moment | None = Field(
        default=None,
        description="turns said until then, and facts that held then; unset: what holds now",
    )
    token_budget: int = Field(default=2_000, ge=0, le=100_000, description="for the texts of all memories together")


class SourceOut(BaseModel):
    """Where a memory comes from: its id; of a turn session, place and time; of a fact also when it held."""

    session_id: str | None = None
    turn_number: int | None = Field(default=None, description="1-based place in the session")
    role: str | None = None
    said_at: datetime | None = None
    fact_id: UUID | None = None
    fact_kind: FactKind | None = None
    said_by: Speaker | None = Field(default=None, description="only what the user says is the user's word")
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    knowledge_id: UUID | None = None
    category: str | None = Field(default=None, description="of knowledge")
    type: str | None = Field(default=None, description="of knowledge")
    shared: bool | None = Field(
        default=None, description="of knowledge: whether an operator wrote it, for all users of the agent"
    )


class RecalledMemoryOut(BaseModel):
    """One memory, as it was said."""

    kind: MemoryKind
    text: str
    rank: int
    relevance: float = Field(description="standard deviations above the mean of the agent's memories of that kind")
    similarity: float | None = Field(description="cosine, -1 to 1; null without vectors")
    source: SourceOut


class SessionFoundOut(BaseModel):
    """A session that the question is about."""

    session_id: str
    relevance: float


class RecallOut(BaseModel):
    """The memories found, the best first."""

    memories: list[RecalledMemoryOut]
    sessions: list[SessionFoundOut] = Field(description="the best five, the best first")
    tokens: int = Field(description="of all texts, as estimated")
    left_out: int = Field(description="memories that the budget had no room for")
    degraded: list[str]
