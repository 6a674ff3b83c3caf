"""The request for memory and its answer: the rows that were read for it, the slate, and the text for the prompt."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import isnan
from typing import Literal
from uuid import UUID

from policy import features
from policy.decide import REPLAYED, Decision, Policy
from retrieval.procedures.lessons import CaseLesson
from retrieval.procedures.procedure import Procedure, ProcedureMatches
from retrieval.procedures.threshold import Threshold
from retrieval.ranking.pool import Pool
from retrieval.recall.memory import Recalled
from retrieval.sealed import UserSeal
from retrieval.search.candidates import Candidate, CaseSearch
from retrieval.search.profile_settings import ProfileSettings
from retrieval.search.unrelated import Floor
from retrieval.sections.context import MemoryContext
from retrieval.sections.quotes import QuotingSection
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


@dataclass(frozen=True)
class SearchResult:
    """The rows that were read for a request for memory.

    Attributes:
        settings: the profile's settings; None if there is no such profile yet.
        found: the cases found; empty if memory is off.
        degraded: names of the parts of the search that failed.
    """

    settings: ProfileSettings | None
    found: Sequence[Candidate]
    degraded: list[str]
    is_off: bool = False
    """True if memory is switched off, for the request or the profile."""
    procedures: ProcedureMatches = field(default_factory=ProcedureMatches)
    threshold: Threshold = field(default_factory=Threshold)
    """Least similarity of the query and a procedure's trigger, or a run that taught it."""
    floor: Floor | None = None
    """Least similarities at which a text counts as related to the query; None: the embedding model was not measured."""
    unrelated: frozenset[UUID] = frozenset()
    """Ids of the cases found that are unrelated to the query."""
    seal: UserSeal | None = None
    """Seal that opens the cases' texts; None if no case is sealed."""
    quotes: Sequence[QuotingSection] = ()
    """Sections of the context that quote the session and the facts about the user."""
    recalled: Recalled | None = None
    """Recalled turns, facts and knowledge; None if not requested, or if memory is off."""
    unreadable: frozenset[UUID] = frozenset()
    """Ids of the cases found that do not decrypt."""

    @cached_property
    def cases(self) -> list[Candidate]:
        """Those of the cases found that are related to the query and, as far as is known, decrypt."""
        hidden = self.unrelated | self.unreadable
        return [row for row in self.found if row.id not in hidden]


Mode = Literal["hybrid", "keyword", "off", "empty"]
"""Mode of an answer.

``hybrid``: cases were searched by vectors and words; ``keyword``: by words only; ``off``: memory is off for the profile
or the request; ``empty``: neither cases nor procedures were found."""


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """One place of the slate: the case, and the reason why it is there.

    Attributes:
        q_value: expected reward of the case, 0 to 1; None if no network served, because an order predicts no reward.
    """

    row: Candidate
    propensity: float
    q_value: float | None
    why: str


@dataclass(slots=True, eq=False)
class Retrieved:
    """The answer to a request for memory, filled step by step: the decision, the context, and the reasons last.

    Attributes:
        k: largest number of cases on the slate.
        pool: the candidates as the policy sees them.
        policy: the policy that served; None: the untrained default.
        cases: the cases on the slate, the best first, decrypted.
        others: further runs below the slate, decrypted; in the end those that fit the limit of tokens.
        procedures: procedures to show, the best first.
        quarantine: true if procedures and lessons are shown only if proven runs taught them or a person pinned them.
        degraded: names of the parts of the search that failed.
        lessons: lessons of the slate's cases, by case id, if requested.
        choices: the places of the slate, in their order.
    """

    question: Question
    result: SearchResult
    retrieval_id: UUID
    k: int
    pool: Pool
    decision: Decision
    policy: Policy | None
    cases: Sequence[Candidate]
    others: Sequence[Candidate]
    procedures: Sequence[Procedure]
    quarantine: bool
    degraded: list[str]
    lessons: Mapping[UUID, CaseLesson] = field(default_factory=dict)
    context: MemoryContext = field(default_factory=MemoryContext)
    choices: Sequence[Choice] = ()

    @property
    def case_ids(self) -> list[UUID]:
        """Ids of the cases on the slate, in the order of places."""
        return [row.id for row in self.cases]

    @property
    def propensities(self) -> list[float]:
        """Propensities of the cases on the slate, in the order of places."""
        decision = self.decision
        return [decision.lottery.place_chance(place, index) for place, index in enumerate(decision.slate)]

    @property
    def policy_version(self) -> str:
        """Version of the policy that served."""
        return REPLAYED if self.policy is None else self.policy.version

    @property
    def mode(self) -> Mode:
        """Mode of the answer."""
        if self.result.is_off:
            return "off"
        if not self.result.found and not self.result.procedures:
            return "empty"
        return "keyword" if set(self.degraded) - {"pgvector", "rewriter", "unreadable"} else "hybrid"

    @property
    def rewritten(self) -> str | None:
        """Query that was searched for in place of the request's; None: the request's own was."""
        return None if self.question.original_query is None else self.question.search.query

    @property
    def threshold(self) -> Threshold | None:
        """Least similarity that procedures had to reach; None if no procedure was searched for."""
        return self.result.procedures.threshold

    @property
    def recalled(self) -> Recalled | None:
        """Recalled turns, facts and knowledge; None if not requested, or if memory is off."""
        return self.result.recalled

    @property
    def why_empty(self) -> str | None:
        """Reason why the slate has no case; None if it has one."""
        result = self.result
        if self.decision.slate:
            return None
        if result.is_off:
            return "memory is switched off for this " + ("agent" if self.question.memory else "request")
        if result.unreadable and not result.cases:
            return "no case that was found decrypts"
        if not result.cases:
            unrelated = "no case is related to the query: none is near it, and none shares a rare word with it"
            return unrelated if result.found else "no case was found: the agent has none yet, or none fits the request"
        if not self.decision.allowed:
            return "there is no case that may be shown"
        return "left empty to see what is done without memory"

    def terms(self, place: int) -> dict[str, float | None]:
        """Returns every feature of the case at a place, from 0, and the terms of its score; a missing one is None."""
        scores, index = self.decision.scores, self.decision.slate[place]
        own = dict(zip(features.NAMES, map(float, self.pool.features[index]), strict=True))
        terms = {"prior": scores.prior, "residual": scores.residual, "spread": scores.spread, "score": scores.total}
        own |= {name: float(values[index]) for name, values in terms.items()}
        return {name: None if isnan(value) else value for name, value in own.items()}
