"""The question that a backend asks before its agent acts."""

from dataclasses import dataclass

from retrieval.search.candidates import Search
from retrieval.tables.kinds import Rewrite


@dataclass(frozen=True, slots=True)
class Question:
    """What a backend asks before it acts."""

    search: Search
    k: int | None = None
    token_budget: int = 1500
    min_similarity: float | None = None
    memory: bool = True
    """Whether anything is to be told; if not, the answer is empty and the decision logged as one without memory."""
    tool_memory: bool = False
    """Whether the context says which tools of its cases fail often, and what put that right."""
    rewrite: Rewrite | None = None
    """Who turns the query into what is searched for; None: whoever the profile says."""
    original_query: str | None = None
    """The query as it came, where ``search`` has another in its place."""
    session: str | None = None
    """The session that the context begins with; one that there is not is passed over."""
    facts: bool = True
    """Whether the context says what is known of the user; who tells that in another place does not want it twice."""
    others: bool = True
    """Whether the context tells runs beside the slate: a failure near the task, and other ways to do it."""
    recall: bool = False
    """Whether turns, facts and knowledge are looked for, too, and told."""
    lessons: bool = False
    """Whether each case comes with what it taught, in the place of procedures that fit."""
    logged: bool = True
    """Whether the decision is kept; what a person tries out must not stand among an agent's."""
