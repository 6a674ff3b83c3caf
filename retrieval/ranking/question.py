"""The question that a backend asks before its agent acts."""

from dataclasses import dataclass

from retrieval.search.candidates import Search
from retrieval.tables.kinds import Rewrite


@dataclass(frozen=True, slots=True)
class Question:
    """A request for memory before an agent acts."""

    search: Search
    k: int | None = None
    token_budget: int = 1500
    min_similarity: float | None = None
    memory: bool = True
    """False for an empty answer, logged as a decision without memory."""
    tool_memory: bool = False
    """True for lines about the tools of the slate's cases that fail often, and what put that right."""
    rewrite: Rewrite | None = None
    """Rewriter of the query; None: the profile's."""
    original_query: str | None = None
    """Query of the request, if ``search`` has another in its place."""
    session: str | None = None
    """Session that the context begins with; an unknown one is ignored."""
    facts: bool = True
    """False to leave out the facts known of the user, for a caller who quotes them elsewhere."""
    others: bool = True
    """False to leave out runs beside the slate: a failure near the task, and other ways to do it."""
    recall: bool = False
    """True to recall turns, facts and knowledge as well."""
    lessons: bool = False
    """True to return each case's lesson in place of procedures for the task."""
    logged: bool = True
    """False to log no decision, for questions that a person tries out in the console."""
