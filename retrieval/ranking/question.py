"""The request for memory that a backend sends before its agent acts."""

from dataclasses import dataclass

from retrieval.search.candidates import CaseSearch
from retrieval.tables.kinds import Rewrite


@dataclass(frozen=True, slots=True)
class Question:
    """A request for memory that a backend sends before its agent acts."""

    search: CaseSearch
    k: int | None = None
    token_budget: int = 1500
    min_similarity: float | None = None
    memory: bool = True
    """False to get an empty answer, which is logged as a decision without memory."""
    tool_memory: bool = False
    """True to get lines about tools of the slate's cases that fail often, with what put their failures right."""
    rewrite: Rewrite | None = None
    """Rewriter of the query; None: the one that the profile's settings name."""
    original_query: str | None = None
    """Query of the request, if ``search`` has a rewritten query in its place; else None."""
    session: str | None = None
    """Name of the session whose conversation the context begins with; an unknown name is ignored."""
    facts: bool = True
    """False to leave the facts about the user out of the context, for a caller that quotes them elsewhere."""
    others: bool = True
    """False to leave out the runs below the slate: a failure at a similar task, and another way to do the task."""
    recall: bool = False
    """True to recall turns, facts and knowledge in addition to cases."""
    lessons: bool = False
    """True to return each case's lesson in place of procedures for the task."""
    logged: bool = True
    """False to log no decision, for a search that a person tries out in the console."""
