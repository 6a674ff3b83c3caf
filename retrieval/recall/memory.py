"""The question of a recall, and its answer: turns, facts and knowledge, each with its source."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import get_args
from uuid import UUID

from retrieval.tables.kinds import FactKind, MemoryKind, Speaker

KINDS: tuple[MemoryKind, ...] = get_args(MemoryKind)
MOST = 100
"""Largest number of memories in the answer of a recall."""


@dataclass(frozen=True, slots=True)
class RecallQuestion:
    """A question to recall the memories of one agent: its turns, facts and knowledge.

    Attributes:
        kinds: kinds of memories to search, at least one.
        session: name of the only session whose turns are searched; None: all. Facts and knowledge belong to no session.
        as_of: time up to which turns were said and at which facts held; None: all turns, and the facts that hold now.
            Knowledge is always the current one.
        token_budget: largest number of tokens of all texts together; a memory that does not fit is left out as a whole.
    """

    agent_key: str
    query: str
    top_k: int = 10
    kinds: Sequence[MemoryKind] = KINDS
    session: str | None = None
    as_of: datetime | None = None
    token_budget: int = 2_000


@dataclass(frozen=True, slots=True)
class TurnSource:
    """Source of a turn: the backend's name of its session, its number there, from 1, its role and its time."""

    session_id: str
    number: int
    role: str
    said_at: datetime


@dataclass(frozen=True, slots=True)
class FactSource:
    """Source of a fact: its id and kind, its speaker, and the time for which it holds (``valid_to`` None: still)."""

    fact_id: UUID
    kind: FactKind
    said_by: Speaker
    valid_from: datetime
    valid_to: datetime | None


@dataclass(frozen=True, slots=True)
class KnowledgeSource:
    """Source of knowledge: the entry's id, category and type, and whether all users of the agent share it."""

    knowledge_id: UUID
    category: str
    entry_type: str
    shared: bool = False


Source = TurnSource | FactSource | KnowledgeSource


@dataclass(frozen=True, slots=True)
class RecalledMemory:
    """One recalled memory: the text of a turn, a fact or an entry of knowledge.

    Attributes:
        rank: place in the answer, from 1; of equally relevant memories the newer comes first.
        relevance: standard deviations by which the memory fits the query better than the mean of all memories searched;
            memories are ranked by it.
        similarity: cosine of the text and the query, -1 to 1; None if one of them has no vector.
        source: origin of the text.
        memory_id: id of the user's memory that found the text, which an edit of the text changes; None: the entry is
            shared, or the turn followed a turn that was found.
    """

    kind: MemoryKind
    text: str
    rank: int
    relevance: float
    similarity: float | None
    source: Source
    memory_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class SessionFound:
    """A session that fits a recall's query.

    Attributes:
        session_id: the backend's name of the session.
        relevance: standard deviations by which the session fits better than the mean of the agent's sessions.
    """

    session_id: str
    relevance: float


@dataclass(frozen=True, slots=True)
class Recalled:
    """The answer of a recall.

    Attributes:
        left_out: number of found memories that did not fit the limit of tokens.
        sessions: the five sessions that fit best, the best first.
        degraded: parts of the search that failed: ``embedder``, ``query_not_embeddable``, ``pgvector``.
        texts: number of texts that were searched, estimated in a large bank; 0 if no memory was found.
    """

    memories: Sequence[RecalledMemory] = ()
    tokens: int = 0
    left_out: int = 0
    sessions: Sequence[SessionFound] = ()
    degraded: Sequence[str] = field(default_factory=list)
    texts: int = field(default=0, compare=False)
