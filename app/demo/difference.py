"""Paired differences between two arms over the same tasks, with bootstrap intervals."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import nan

import numpy as np
from numpy.typing import NDArray

from policy.evaluate import Plan, resampled

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
    before, after, tasks = resampled(columns, Plan(resamples=RESAMPLES, seed=seed)).T
    low, high = np.nanquantile(compare(before / tasks, after / tasks), (0.025, 0.975))
    before, after, tasks = columns.sum(axis=0)
    return Difference(float(compare(before / tasks, after / tasks)), float(low), float(high))


def relative(before: Numbers, after: Numbers) -> Numbers:
    """Returns the change as a share of the first value, so that -0.5 is half of it; NaN if the first value is 0."""
    changed: Numbers = after / np.where(before == 0, np.nan, before) - 1
    return changed


def absolute(before: Numbers, after: Numbers) -> Numbers:
    """Returns the second value minus the first."""
    return after - before
