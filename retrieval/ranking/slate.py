"""What is asked and what is answered: a question, the rows that a search found, and the slate with its reasons."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import isnan
from typing import Literal
from uuid import UUID

from policy import default, features
from policy.decide import Scores
from policy.features import Features
from retrieval.procedures.found import Procedure, ProceduresFound
from retrieval.procedures.lessons import Lesson
from retrieval.procedures.threshold import Threshold
from retrieval.recall.memory import Recalled
from retrieval.search.candidates import BankRow, Candidate, Search, is_candidate
from retrieval.search.profile_settings import ProfileSettings
from retrieval.sections.context import MemoryContext, PartName, Quoted
from retrieval.tables.kinds import Rewrite

Mode = Literal["hybrid", "keyword", "off", "empty"]
"""What carried the search; off: memory is, for the profile or the request; empty: there was nothing to find."""


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


@dataclass(frozen=True)
class SearchResult:
    """The rows of the candidates' statement, what was missing when they were searched for, and the procedures."""

    rows: Sequence[BankRow]
    degraded: list[str]
    procedures: ProceduresFound = field(default_factory=ProceduresFound)
    unrelated: frozenset[UUID] = frozenset()
    """Of the candidates, those that have nothing to do with the query."""
    wanted: bool = True
    """Whether the request wants to be told anything."""
    quotes: Mapping[PartName, Quoted] = field(default_factory=dict)
    """What the context says of the session and of the user, as far as there is something to say."""
    recalled: Recalled | None = None
    """What was found of turns, facts and knowledge; None where that was not asked for, or memory is off."""

    @property
    def settings(self) -> ProfileSettings | None:
        """The profile's settings; None where there is no such profile."""
        return self.rows[0] if self.rows else None

    @property
    def is_off(self) -> bool:
        """Whether memory is off, for the request or the profile."""
        return not self.wanted or bool(self.rows and not self.rows[0].enabled)

    @cached_property
    def candidates(self) -> list[Candidate]:
        """What was found; nothing of a profile without cases, or where memory is off."""
        return [] if self.is_off else [row for row in self.rows if is_candidate(row)]

    @cached_property
    def cases(self) -> list[Candidate]:
        """The candidates that may be told: those that have to do with the query."""
        return [row for row in self.candidates if row.id not in self.unrelated]


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """One place of the slate: the case as it was read, what the policy knew of it, and why it is there."""

    row: Candidate
    propensity: float
    q_value: float | None
    """Expected reward, 0 to 1; None of the untrained default, which promises none."""
    why: str
    index: int
    """Of the case among the candidates."""
    features: Features
    scores: Scores

    def terms(self) -> dict[str, float | None]:
        """Returns every feature of the case, and every term of its score; a missing number is None."""
        scores, index = self.scores, self.index
        terms = {
            "posterior_mean": float(default.posterior_mean(self.features[index : index + 1])[0]),
            "prior": float(scores.prior[index]),
            "residual": float(scores.residual[index]),
            "spread": float(scores.spread[index]),
            "score": float(scores.total[index]),
        }
        own = dict(zip(features.NAMES, map(float, self.features[index]), strict=True))
        return {name: None if isnan(value) else value for name, value in (own | terms).items()}


@dataclass(frozen=True, slots=True)
class Retrieved:
    """The answer to a question, as it was logged."""

    retrieval_id: UUID
    choices: list[Choice]
    context: MemoryContext
    mode: Mode
    policy_version: str = default.VERSION
    degraded: list[str] = field(default_factory=list)
    procedures: Sequence[Procedure] = ()
    others: Sequence[Candidate] = ()
    """Runs that are told beside the slate, as far as the budget has room for them."""
    threshold: Threshold | None = None
    """From which similarity on a procedure was shown; None where nobody looked for any."""
    rewritten: str | None = None
    """What was searched for in place of the query; None: the query itself."""
    why_empty: str | None = None
    """Of a slate without a case; None where there is one."""
    recalled: Recalled | None = None
    """What was found of turns, facts and knowledge; None where that was not asked for, or memory is off."""
    lessons: Mapping[UUID, Lesson] = field(default_factory=dict)
    """What the cases of the slate taught, by case, where that was asked for."""
