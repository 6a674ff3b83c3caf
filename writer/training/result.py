"""The result of a training for one profile."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from policy.verdict import Verdict

TrainingOutcome = Literal[
    "candidate",
    "promote",
    "keep",
    "futile",
    "roll back",
    "insufficient evidence",
    "too few decisions",
    "rewards all equal",
    "nothing new",
    "worse than the default on held-out decisions",
    "serves nearly the same slates",
    "diverged",
    "no such profile",
    "learning or its trials are off",
    "another trainer was first",
    "erased",
]


@dataclass(frozen=True, slots=True)
class TrainingResult:
    """The outcome of one night's training for one profile.

    Attributes:
        decisions: number of rewarded decisions in the profile's log.
        missing: number of further rewarded decisions that are needed before a candidate is trained.
    """

    user_sub: str
    agent_key: str
    outcome: TrainingOutcome
    version: int | None = None
    decisions: int = 0
    verdict: Verdict | None = None
    metrics: Mapping[str, object] = field(default_factory=dict)
    missing: int = 0
