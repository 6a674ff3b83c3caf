"""The question of a recall, and its answer: memories of several kinds, each with its source."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import get_args
from uuid import UUID

from retrieval.tables.kinds import FactKind, MemoryKind, Speaker

KINDS: tuple[MemoryKind, ...] = get_args(MemoryKind)
MOST = 100
"""Memories that one recall answers, at most."""


@dataclass(frozen=True, slots=True)
class RecallQuestion:
    """A question about one agent's memories.

    Attributes:
        kinds: kinds to look for, at least one.
        session: session to look for turns in, by its backend's name; other kinds are found all the same.
        as_of: time until which turns were said and at which facts held; None: all turns, and the facts that hold.
            Knowledge is always the current one.
        token_budget: limit for the texts of all memories together; a memory that does not fit is left out, whole.
    """

    agent_key: str
    query: str
    top_k: int = 10
    kinds: Sequence[MemoryKind] = KINDS
    session: str | None = None
    as_of: datetime | None = None
    token_budget: int = 2_000


@dataclass(frozen=True, slots=True)
class Large:
    """Sizes above which a recall weighs a sample of the texts.

    Attributes:
        texts: number of a profile's texts, at its last recall, above which a recall is an approximation, except
            within one session.
        sample: approximate number of texts to draw, by a hash of their ids.
    """

    texts: int = 20_000
    sample: int = 2_000

    def sample_of(self, texts: int) -> int | None:
        """Returns the number to draw from these texts; None: all are weighed."""
        return min(self.sample, texts) if texts > self.texts else None


@dataclass(frozen=True, slots=True)
class TurnSource:
    """Source of a turn: its session by the backend's name, its 1-based number, its role and its time."""

    session_id: str
    number: int
    role: str
    said_at: datetime


@dataclass(frozen=True, slots=True)
class FactSource:
    """Source of a fact: its id and kind, its speaker, and the time it held."""

    fact_id: UUID
    kind: FactKind
    said_by: Speaker
    valid_from: datetime
    valid_to: datetime | None


@dataclass(frozen=True, slots=True)
class KnowledgeSource:
    """Source of knowledge: the entry's id, category and type, and a mark if all users of the agent share it."""

    knowledge_id: UUID
    category: str
    entry_type: str
    shared: bool = False


Source = TurnSource | FactSource | KnowledgeSource


@dataclass(frozen=True, slots=True)
class Memory:
    """One memory in its own words.

    Attributes:
        rank: place, 1-based; ties go to the newer one.
        similarity: cosine of its text and the query, -1 to 1; None if either has no vector.
        relevance: distance from the mean of its kind, in standard deviations; memories are ranked by it.
    """

    kind: MemoryKind
    text: str
    rank: int
    relevance: float
    similarity: float | None
    source: Source


@dataclass(frozen=True, slots=True)
class SessionFound:
    """A session, by its backend's name, and its relevance among the agent's sessions, in standard deviations."""

    session_id: str
    relevance: float


@dataclass(frozen=True, slots=True)
class Recalled:
    """The memories found, the best first.

    Attributes:
        tokens: length of their texts.
        left_out: number of memories that did not fit the budget.
        sessions: the best five whose turns were looked at, the best first.
        degraded: parts that were down: ``embedder``, ``query_not_embeddable``, ``pgvector``.
        texts: number of texts that were looked at, estimated in a large bank; 0 if no memory was found.
    """

    memories: Sequence[Memory] = ()
    tokens: int = 0
    left_out: int = 0
    sessions: Sequence[SessionFound] = ()
    degraded: Sequence[str] = field(default_factory=list)
    texts: int = field(default=0, compare=False)
