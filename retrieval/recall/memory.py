"""What a recall asks for, and what it answers: memories of several kinds, each with its source."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import get_args
from uuid import UUID

from retrieval.tables.kinds import FactKind, MemoryKind, Speaker

KINDS: tuple[MemoryKind, ...] = get_args(MemoryKind)
MOST = 100
"""That one recall answers."""


@dataclass(frozen=True, slots=True)
class RecallQuestion:
    """What to look for among one agent's memories.

    Attributes:
        kinds: at least one.
        session: of turns those of this session alone, by its backend's name; the other kinds are found all the same.
        as_of: turns said until then, and facts that held then; None: all turns, and the facts that hold. Of
            knowledge what stands there now.
        token_budget: for the texts of all memories together; what does not fit is left out, whole.
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
    """When a bank is too large to be weighed text by text.

    Attributes:
        texts: above so many of a profile, as its last recall had them, what is found is an approximation; not within
            one session.
        sample: by so many of them it is weighed, as drawn by a hash of their ids; some more or fewer.
    """

    texts: int = 20_000
    sample: int = 2_000

    def sample_of(self, texts: int) -> int | None:
        """Returns how many are drawn from so many texts; None: all are weighed."""
        return min(self.sample, texts) if texts > self.texts else None


@dataclass(frozen=True, slots=True)
class TurnSource:
    """Where a turn was said: the session by its backend's name, the place in it (1-based), by whom, and when."""

    session_id: str
    number: int
    role: str
    said_at: datetime


@dataclass(frozen=True, slots=True)
class FactSource:
    """Which fact it is, who said it, and when it held."""

    fact_id: UUID
    kind: FactKind
    said_by: Speaker
    valid_from: datetime
    valid_to: datetime | None


@dataclass(frozen=True, slots=True)
class KnowledgeSource:
    """Which entry of knowledge it is, its category and type, and whether all users of the agent share it."""

    knowledge_id: UUID
    category: str
    entry_type: str
    shared: bool = False


Source = TurnSource | FactSource | KnowledgeSource


@dataclass(frozen=True, slots=True)
class Memory:
    """One memory in words, as it was said.

    Attributes:
        rank: 1-based; ties go to the newer one.
        similarity: cosine of its text and the query, -1 to 1; None where it has no vector, or the query has none.
        relevance: how much it stands out among the memories of its kind, in standard deviations; by it they are ranked.
    """

    kind: MemoryKind
    text: str
    rank: int
    relevance: float
    similarity: float | None
    source: Source


@dataclass(frozen=True, slots=True)
class SessionFound:
    """A session, by its backend's name, and how much it stands out among the agent's."""

    session_id: str
    relevance: float


@dataclass(frozen=True, slots=True)
class Recalled:
    """The memories found, the best first.

    Attributes:
        tokens: of their texts.
        left_out: those that the budget had no room for.
        sessions: the best five whose turns were looked at, the best first.
        degraded: what was missing: ``embedder``, ``query_not_embeddable``, ``pgvector``.
        texts: all that were looked at, estimated in a large bank; 0 where nothing was found.
    """

    memories: Sequence[Memory] = ()
    tokens: int = 0
    left_out: int = 0
    sessions: Sequence[SessionFound] = ()
    degraded: Sequence[str] = field(default_factory=list)
    texts: int = field(default=0, compare=False)
