"""Calibration of a policy's predicted rewards, and the difference of two policies' rewards by segment.

Sources: Guo et al. 2017 (ECE); Roelofs et al. 2022 (equal-mass bins, and the bias of ECE); Bonferroni's
inequality.
"""

from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from policy.evaluate import clustered_mean
from policy.logged import Floats, Logged

NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class Bin:
    """A bin of decisions with similar predicted rewards.

    Attributes:
        predicted: mean predicted reward of the bin's decisions.
        observed: mean actual reward of these decisions.
        weight: share of the total weight that the bin has.
    """

    predicted: float
    observed: float
    weight: float
    rows: int


@dataclass(frozen=True, slots=True)
class Calibration:
    """Distance of a policy's predicted rewards from the actual rewards.

    Attributes:
        ece: expected calibration error: weighted mean, over bins of equal weight, of the gap between predicted and
            actual reward.
        noise: the error that a perfectly calibrated policy would show with as many rows, since a gap is never negative.
        excess: part of ``ece`` that noise does not explain.
        rows: number of decisions with a prediction, a reward and a weight.
    """

    ece: float
    noise: float
    excess: float
    rows: int
    bins: tuple[Bin, ...]


def calibration(predicted: Floats, reward: Floats, weight: Floats | None = None, bins: int = 10) -> Calibration | None:
    """Returns the calibration over decisions with a prediction, a reward and a weight above 0; None if there are none.

    Bins have equal shares of the weight; there is at most one bin for every 20 decisions.
    """
    weight = np.ones_like(reward) if weight is None else weight
    rows = np.isfinite(predicted) & np.isfinite(reward) & (weight > 0)
    if not rows.any():
        return None
    by_prediction = np.argsort(predicted[rows], kind="stable")
    promised, got, mass = (column[rows][by_prediction] for column in (predicted, reward, weight))
    mass = mass / mass.sum()
    count = max(1, min(bins, len(mass) // 20))
    place = np.minimum(((np.cumsum(mass) - mass / 2) * count).astype(np.int64), count - 1)
    parts, noise = [], 0.0
    for number in np.unique(place):
        inside = place == number
        part = float(mass[inside].sum())
        share = mass[inside] / part
        observed = float((share * got[inside]).sum())
        variance = float((share * np.square(got[inside] - observed)).sum()) * float(np.square(share).sum())
        parts.append(Bin(float((share * promised[inside]).sum()), observed, part, int(inside.sum())))
        noise += part * variance**0.5
    noise *= float(np.sqrt(2 / np.pi))
    ece = sum(each.weight * abs(each.predicted - each.observed) for each in parts)
    return Calibration(ece, noise, max(0.0, ece - noise), len(mass), tuple(parts))


@dataclass(frozen=True, slots=True)
class Segment:
    """The difference of two policies' rewards within one segment of the log.

    Attributes:
        groups: number of its query groups on which the policies differ.
        difference: mean reward of the first policy less that of the second.
        tested: true if the segment has enough groups for the test.
        worse: true if the first policy is shown to be worse: a one-sided test, Bonferroni over the tested segments.
    """

    segment: int
    rows: int
    groups: int
    difference: float
    standard_error: float
    tested: bool
    worse: bool


def segments(shares: Floats, logged: Logged, alpha: float = 0.05, min_groups: int = 20) -> tuple[Segment, ...]:
    """Returns the difference of two policies' rewards within each segment, the worst first.

    Args:
        shares: (n,), each row's share in the difference (`policy.evaluate.difference_shares`).
        logged: the log's n decisions.
        alpha: chance, 0 to 1, that any of the segments is called worse when none is.
        min_groups: least number of query groups on which the policies differ (a share other than zero) for a test.
    """
    parts = []
    for name in np.unique(logged.segment):
        inside = logged.segment == name
        groups = len(np.unique(logged.group[inside & (shares != 0)]))
        mean, error = clustered_mean(shares[inside], logged.group[inside])
        tested = groups >= min_groups and error > 0
        parts.append(Segment(int(name), int(inside.sum()), groups, mean, error, tested=tested, worse=False))
    critical = NORMAL.inv_cdf(1 - alpha / max(1, sum(part.tested for part in parts)))
    done = [replace(part, worse=part.tested and part.difference < -critical * part.standard_error) for part in parts]
    return tuple(sorted(done, key=lambda part: (part.difference, part.segment)))
