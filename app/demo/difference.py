"""Paired differences between two arms over the same tasks, with bootstrap intervals."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import nan

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 2000

Pairs = Sequence[tuple[float, float]]
"""Values of one arm and the other on the tasks of one group, which is resampled as a whole."""
Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference and its 95 % interval; NaN without tasks."""

    value: float
    low: float
    high: float


def bootstrap(groups: Sequence[Pairs], compare: Callable[[Numbers, Numbers], Numbers], seed: int = 0) -> Difference:
    """Returns ``compare`` of both arms' means over all pairs, with an interval from resampling whole groups."""
    if not groups:
        return Difference(nan, nan, nan)
    sums = np.array([np.sum(pairs, axis=0) for pairs in groups], dtype=np.float64)  # (groups, 2)
    sizes = np.array([len(pairs) for pairs in groups], dtype=np.float64)
    drawn = np.random.default_rng(seed).integers(len(groups), size=(RESAMPLES, len(groups)))
    means = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)[:, None]
    low, high = np.nanquantile(compare(means[:, 0], means[:, 1]), (0.025, 0.975))
    before, after = sums.sum(axis=0) / sizes.sum()
    return Difference(float(compare(before, after)), float(low), float(high))


def relative(before: Numbers, after: Numbers) -> Numbers:
    """Returns the relative change: -0.5 is half as much; NaN if the first value is 0."""
    changed: Numbers = after / np.where(before == 0, np.nan, before) - 1
    return changed


def absolute(before: Numbers, after: Numbers) -> Numbers:
    """Returns the second value minus the first."""
    return after - before
