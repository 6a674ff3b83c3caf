"""Calibration of a policy's predictions, and its difference by segment.

Sources: Guo et al. 2017 (ECE); Roelofs et al. 2022 (equal-mass bins, and the bias of ECE); Brier 1950;
DerSimonian & Laird 1986 (shrinkage); Bonferroni's inequality.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from policy.evaluate import clustered_mean
from policy.logged import Floats, Logged

NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class Bin:
    """One row of the reliability table; ``weight`` is the bin's share, ``rows`` its count."""

    predicted: float
    observed: float
    weight: float
    rows: int


@dataclass(frozen=True, slots=True)
class Calibration:
    """Distance of predictions from rewards.

    ``ece`` is the weighted mean gap of bins of equal mass; ``noise`` is what a perfectly calibrated policy would
    show with as many rows, since a gap is never negative; ``excess`` is the part that noise does not explain.
    """

    ece: float
    noise: float
    excess: float
    brier: float
    rows: int
    bins: tuple[Bin, ...]


def calibration(predicted: Floats, reward: Floats, weight: Floats | None = None, bins: int = 10) -> Calibration | None:
    """Returns the calibration over rows with a promise, a reward and a weight; None where there is no such row.

    Bins have equal mass (of weight), at most one for every 20 rows.
    """
    weight = np.ones_like(reward) if weight is None else weight
    rows = np.isfinite(predicted) & np.isfinite(reward) & (weight > 0)
    if not rows.any():
        return None
    order = np.argsort(predicted[rows], kind="stable")
    promised, got, mass = (column[rows][order] for column in (predicted, reward, weight))
    mass = mass / mass.sum()
    count = max(1, min(bins, len(mass) // 20))
    place = np.minimum(((np.cumsum(mass) - mass / 2) * count).astype(np.int64), count - 1)
    parts = [_bin(promised[place == n], got[place == n], mass[place == n]) for n in np.unique(place)]
    ece = sum(part.weight * abs(part.predicted - part.observed) for part, _ in parts)
    noise = sum(part.weight * deviation for part, deviation in parts) * float(np.sqrt(2 / np.pi))
    brier = float((mass * np.square(promised - got)).sum())
    return Calibration(ece, noise, max(0.0, ece - noise), brier, len(mass), tuple(part for part, _ in parts))


def _bin(promised: Floats, got: Floats, mass: Floats) -> tuple[Bin, float]:
    """Returns a bin and the standard error of its observed mean."""
    share = mass / mass.sum()
    observed = float((share * got).sum())
    variance = float((share * np.square(got - observed)).sum()) * float(np.square(share).sum())
    return Bin(float((share * promised).sum()), observed, float(mass.sum()), len(got)), variance**0.5


@dataclass(frozen=True, slots=True)
class Segment:
    """The difference of two policies within one segment.

    ``shrunk`` is drawn to the mean of all segments by as much as noise explains their spread. ``worse`` is the
    one-sided test against zero, Bonferroni over the tested segments; a segment too small to read is not tested.
    """

    segment: int
    rows: int
    groups: int
    difference: float
    standard_error: float
    shrunk: float
    tested: bool
    worse: bool


def segments(shares: Floats, logged: Logged, alpha: float = 0.05, min_groups: int = 20) -> tuple[Segment, ...]:
    """Returns the difference by segment, the worst first, from the rows' shares in it (`difference_shares`).

    ``alpha`` is the chance that any of the segments is called worse when none is; ``min_groups`` counts the groups
    whose decisions say anything (a share other than zero).
    """
    parts = [_segment(int(name), shares, logged, min_groups) for name in np.unique(logged.segment)]
    critical = NORMAL.inv_cdf(1 - alpha / max(1, sum(part.tested for part in parts)))
    shrunk = _shrunk([part for part in parts if part.tested])
    done = (
        replace(
            part,
            shrunk=shrunk.get(part.segment, 0.0),
            worse=part.tested and part.difference < -critical * part.standard_error,
        )
        for part in parts
    )
    return tuple(sorted(done, key=lambda part: (part.shrunk, part.segment)))


def _segment(name: int, shares: Floats, logged: Logged, min_groups: int) -> Segment:
    inside = logged.segment == name
    speaking = len(np.unique(logged.group[inside & (shares != 0)]))
    mean, error = clustered_mean(shares[inside], logged.group[inside])
    tested = speaking >= min_groups and error > 0
    return Segment(name, int(inside.sum()), speaking, mean, error, 0.0, tested=tested, worse=False)


def _shrunk(tested: Sequence[Segment]) -> Mapping[int, float]:
    """Returns the segments' differences shrunk to their common mean (DerSimonian & Laird 1986)."""
    if not tested:
        return {}
    difference = np.array([part.difference for part in tested])
    precision = np.array([part.standard_error for part in tested]) ** -2.0
    centre = float((precision * difference).sum() / precision.sum())
    scatter = float((precision * np.square(difference - centre)).sum()) - (len(difference) - 1)
    scale = float(precision.sum() - np.square(precision).sum() / precision.sum())
    between = max(0.0, scatter / scale) if scale > 0 else 0.0
    keep = between / (between + 1 / precision)
    return {
        part.segment: float(value) for part, value in zip(tested, centre + keep * (difference - centre), strict=True)
    }
