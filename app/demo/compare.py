"""Comparison of casebank with keyword memory: paired differences over the same tasks."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import nan

import numpy as np
from numpy.typing import NDArray

from app.demo.arms import Stream, TaskRecord
from policy.evaluate import Resampling, resampled

RESAMPLES = 2000

Pairs = Sequence[tuple[float, float]]
"""Values of the first and the second arm, task by task, in one group of tasks, which is resampled as a whole."""
Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference and its 95 % interval; NaN without tasks."""

    value: float
    low: float
    high: float


def bootstrap(groups: Sequence[Pairs], compare: Callable[[Numbers, Numbers], Numbers], seed: int = 0) -> Difference:
    """Returns the difference of two arms' mean values, with its 95 % percentile interval from resampled groups.

    Args:
        groups: pairs of values; the tasks of one group stand or fall together. Without groups the numbers are NaN.
        compare: function of both arms' means, ``relative`` or ``absolute``.
        seed: seed of the draws; the same seed and pairs give the same interval.
    """
    if not groups:
        return Difference(nan, nan, nan)
    columns = np.array([[*np.sum(pairs, axis=0), len(pairs)] for pairs in groups], dtype=np.float64)  # (groups, 3)
    before, after, tasks = resampled(columns, Resampling(resamples=RESAMPLES, seed=seed)).T
    low, high = np.nanquantile(compare(before / tasks, after / tasks), (0.025, 0.975))
    before, after, tasks = columns.sum(axis=0)
    return Difference(float(compare(before / tasks, after / tasks)), float(low), float(high))


def relative(before: Numbers, after: Numbers) -> Numbers:
    """Returns (after - before) / before, so -0.5 for a half; NaN where before is 0."""
    changed: Numbers = after / np.where(before == 0, np.nan, before) - 1
    return changed


def absolute(before: Numbers, after: Numbers) -> Numbers:
    """Returns the second value minus the first."""
    return after - before


STEPS_AIM = -0.35
"""Required change of the steps; see ``ArmComparison.proven``."""
SUCCESS_AIM = 10.0
"""Required gain in points of success; see ``ArmComparison.proven``."""


@dataclass(frozen=True, slots=True)
class ArmComparison:
    """One arm against its rival: steps as a change (-0.2: a fifth fewer), success and first tries in points."""

    steps: Difference
    success: Difference
    first_try: Difference

    @property
    def proven(self) -> bool:
        """True if one of the two aims is reached, with an interval that excludes 0."""
        fewer = self.steps.value <= STEPS_AIM and self.steps.high < 0
        return fewer or (self.success.value >= SUCCESS_AIM and self.success.low > 0)

    def numbers(self) -> str:
        """Returns the differences from the other arm as a text: of steps with its interval, success and first tries."""
        return (
            f"steps {_percent(self.steps.value)} (95 %: {_percent(self.steps.low)} to {_percent(self.steps.high)}),"
            f" success {_points(self.success)}, right at the first try {_points(self.first_try)}"
        )

    def sentence(self) -> str:
        """Returns the comparison with keyword memory asked at the start of a task, and whether an aim is reached."""
        aim = f"{_percent(STEPS_AIM)} of the steps, or {SUCCESS_AIM:+.0f} points of success"
        return f"{self.against('keyword memory')}; aim {'reached' if self.proven else 'missed'}: {aim}"

    def against(self, rival: str) -> str:
        """Returns the comparison of casebank with the rival in words."""
        verdict = "takes fewer steps than" if self.steps.high < 0 else "takes no fewer steps than"
        return f"casebank {verdict} {rival}: {self.numbers()}"

    def as_dict(self) -> dict[str, object]:
        """Returns the numbers, ready for JSON."""
        named = {"steps": self.steps, "success_points": self.success, "first_try_points": self.first_try}
        return {name: [round(each, 4) for each in (d.value, d.low, d.high)] for name, d in named.items()}


def compare(streams: Sequence[Stream], *, at_failures: bool = False) -> ArmComparison:
    """Returns casebank against keyword memory; tasks of one family in one house count as one group.

    ``at_failures``: against the keyword memory that is asked at failures, too.
    """

    def pairs(value: Callable[[TaskRecord], float]) -> Sequence[Pairs]:
        groups: dict[tuple[int, str], list[tuple[float, float]]] = defaultdict(list)
        for stream in streams:
            rival = stream.at_failures if at_failures else stream.keywords
            for before, after in zip(rival.records, stream.casebank.records, strict=True):
                groups[stream.seed, before.family].append((value(before), value(after)))
        return list(groups.values())

    return ArmComparison(
        bootstrap(pairs(lambda record: record.steps), relative),
        bootstrap(pairs(lambda record: 100.0 * record.success), absolute),
        bootstrap(pairs(lambda record: 100.0 * record.first_try), absolute),
    )


def _percent(change: float) -> str:
    return f"{change:+.0%}"


def _points(difference: Difference) -> str:
    return f"{difference.value:+.0f} points ({difference.low:+.0f} to {difference.high:+.0f})"
