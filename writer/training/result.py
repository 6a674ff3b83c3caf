"""The result of a training for one profile."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypedDict, cast

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
    "learning or its trials are off",
    "another trainer was first",
    "erased",
]


class CurvePoint(TypedDict):
    """One point of a learning curve: the gain in log loss, in nats, of a head trained on this number of decisions."""

    decisions: int
    log_loss_gain: float


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

    @property
    def learning_curve(self) -> Sequence[CurvePoint]:
        """Returns the learning curve in the metrics of a new policy; empty: no policy was trained."""
        return cast("Sequence[CurvePoint]", self.metrics.get("learning_curve", ()))
