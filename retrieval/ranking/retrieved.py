"""The answer to a question: the slate, with the reasons for each case, and the text for the prompt."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from typing import Literal
from uuid import UUID

from policy import default, features
from policy.decide import Scores
from policy.features import Features
from retrieval.procedures.found import Procedure
from retrieval.procedures.lessons import Lesson
from retrieval.procedures.threshold import Threshold
from retrieval.recall.memory import Recalled
from retrieval.search.candidates import Candidate
from retrieval.sections.context import MemoryContext

Mode = Literal["hybrid", "keyword", "off", "empty"]
"""What carried the search; off: memory is, for the profile or the request; empty: there was nothing to find."""


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
