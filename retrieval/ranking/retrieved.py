"""The answer to a request for memory: the slate, with the reason for each case, and the text for the prompt."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from typing import Literal
from uuid import UUID

from policy import features
from policy.decide import REPLAYED, Scores
from policy.features import Features
from retrieval.procedures.lessons import CaseLesson
from retrieval.procedures.procedure import Procedure
from retrieval.procedures.threshold import Threshold
from retrieval.recall.memory import Recalled
from retrieval.search.candidates import Candidate
from retrieval.sections.context import MemoryContext

Mode = Literal["hybrid", "keyword", "off", "empty"]
"""Mode of an answer.

``hybrid``: cases were searched by vectors and words; ``keyword``: by words only; ``off``: memory is off for the profile
or the request; ``empty``: neither cases nor procedures were found."""


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """One place of the slate: the case, its features and scores, and the reason why the case is there."""

    row: Candidate
    propensity: float
    q_value: float | None
    """Expected reward of the case, 0 to 1; None if no network served, because an order predicts no reward."""
    why: str
    index: int
    """Index of the case among the candidates."""
    features: Features
    scores: Scores

    def terms(self) -> dict[str, float | None]:
        """Returns every feature of the case and every term of its score, by name; a missing number is None."""
        scores, index = self.scores, self.index
        terms = {
            "prior": float(scores.prior[index]),
            "residual": float(scores.residual[index]),
            "spread": float(scores.spread[index]),
            "score": float(scores.total[index]),
        }
        own = dict(zip(features.NAMES, map(float, self.features[index]), strict=True))
        return {name: None if isnan(value) else value for name, value in (own | terms).items()}


@dataclass(frozen=True, slots=True)
class Retrieved:
    """The answer to a request for memory, as it is logged."""

    retrieval_id: UUID
    choices: list[Choice]
    context: MemoryContext
    mode: Mode
    policy_version: str = REPLAYED
    degraded: list[str] = field(default_factory=list)
    procedures: Sequence[Procedure] = ()
    others: Sequence[Candidate] = ()
    """Runs below the slate that fit the limit of tokens."""
    threshold: Threshold | None = None
    """Least similarity that procedures had to reach; None if no procedure was searched for."""
    rewritten: str | None = None
    """Query that was searched for in place of the request's; None: the request's own was."""
    why_empty: str | None = None
    """Reason why the slate has no case; None if it has one."""
    recalled: Recalled | None = None
    """Recalled turns, facts and knowledge; None if not requested, or if memory is off."""
    lessons: Mapping[UUID, CaseLesson] = field(default_factory=dict)
    """Lessons of the slate's cases, by case id, if requested."""
