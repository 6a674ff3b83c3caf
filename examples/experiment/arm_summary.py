"""The means over the episodes of one arm of an experiment."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from examples.experiment.episode import Episode


@dataclass(frozen=True, slots=True)
class ArmSummary:
    """The means over an arm's episodes in which the environment did not fail; None without any."""

    tasks: int
    steps: float | None
    success: float | None
    injected: float | None
    tokens_added: float | None
    tokens_spent: float | None
    retrieve_ms: float | None
    wall_ms: float | None
    ended: Mapping[str, int]
    """Number of episodes by their end, with those in which the environment failed."""
    tokens_net: float | None = None
    """Tokens saved a task against the arm without memory, less those added."""


def summary(episodes: Sequence[Episode]) -> ArmSummary:
    """Returns the means over the episodes in which the environment did not fail, and the ends of all of them."""
    counted = [each for each in episodes if not each.error]
    return ArmSummary(
        tasks=len(counted),
        steps=mean([each.steps for each in counted]),
        success=mean([each.success for each in counted]),
        injected=mean([each.injected for each in counted]),
        tokens_added=mean([each.tokens_added for each in counted]),
        tokens_spent=mean([each.tokens_spent for each in counted]),
        retrieve_ms=mean([each.retrieve_ms for each in counted if each.retrieve_ms is not None]),
        wall_ms=mean([each.wall_ms for each in counted]),
        ended=dict(Counter(each.ended for each in episodes)),
    )


def mean(values: Sequence[float]) -> float | None:
    """Returns the mean to three digits; None without values."""
    return round(fmean(values), 3) if values else None
