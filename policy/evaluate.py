"""Off-policy evaluation: estimates a policy's mean reward from decisions that other policies took.

Every decision was logged with the exact propensity of its slate under all live policies together, so a slate that two
policies share counts for both, and a decision on which two policies agree adds exactly 0 to their difference.

Sources: Horvitz & Thompson 1952 (IPS); Dudík, Langford & Li 2011 (DR); Kish 1965 (effective sample); Efron 1987 (BCa
interval); Field & Welsh 2007 (cluster bootstrap); Chernozhukov et al. 2018 (cross-fitting).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policy.logged import Floats, Ints, Logged, Target, same_length

CHUNK = 4_000_000
"""Largest number of random draws that the bootstrap holds in memory at once (32 MB)."""
FOLDS = 5
"""Number of parts of the query groups for cross-fitting."""
NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class Resampling:
    """Settings of the random divisions of a log; equal settings and logs give equal numbers.

    Attributes:
        level: one-sided level of each bound by itself: at .99 the truth lies below ``low`` in 1 % of logs.
        resamples: number of bootstrap resamples of whole query groups.
    """

    level: float = 0.99
    resamples: int = 2000
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and its two one-sided bounds, in units of reward."""

    estimate: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Missingness:
    """Numbers of missing rewards, and a test of whether rewards are missing more often under one of two policies.

    Attributes:
        rate_candidate: share without a reward, among decisions that the candidate would serve more often.
        rate_default: share without a reward, among decisions that the default would serve more often.
        z: statistic of the two-proportion test that the two rates are equal.
    """

    rows: int
    missing: int
    rate_candidate: float
    rate_default: float
    z: float


def weights(logged: Logged, target: Target) -> Floats:
    """Returns the importance weight of each slate, (n,); their mean tends to 1 if the log could serve the target."""
    same_length(logged.reward, target.target_probability)
    return target.target_probability / logged.logged_propensity


def effective_sample(weight: NDArray[np.floating[Any]]) -> float:
    """Returns the number of equally weighted rows that say as much as these weighted ones: (Σw)² / Σw² (Kish 1965)."""
    squares = float(np.square(weight).sum())
    return float(weight.sum()) ** 2 / squares if squares > 0 else 0.0


def group_sums(column: Floats, group: Ints) -> Floats:
    """Returns the column's sum over each group's rows, (groups,) or (groups, k), in the groups' order."""
    by_group = np.argsort(group, kind="stable")
    starts = np.flatnonzero(np.diff(group[by_group], prepend=group[by_group][:1] - 1))
    return np.add.reduceat(column[by_group], starts, axis=0)


def clustered_mean(column: Floats, group: Ints) -> tuple[float, float]:
    """Returns the column's mean and its cluster-robust standard error, which is 0 with fewer than two groups."""
    mean = float(column.mean())
    residual = group_sums(column - mean, group)
    if len(residual) < 2:  # noqa: PLR2004 - one group has no spread
        return mean, 0.0
    correction = len(residual) / (len(residual) - 1)
    return mean, float(np.sqrt(np.square(residual).sum() * correction)) / len(column)


def missingness(logged: Logged, candidate: Target, default: Target) -> Missingness:
    """Tests whether rewards are missing more often where the candidate serves than where the default does.

    A decision counts for the policy that would more probably have served its slate.
    """
    missing = np.isnan(logged.reward)
    ours = missing[candidate.target_probability > default.target_probability]
    theirs = missing[candidate.target_probability < default.target_probability]
    if not (len(ours) and len(theirs)):
        return Missingness(len(missing), int(missing.sum()), 0.0, 0.0, 0.0)
    pooled = (ours.sum() + theirs.sum()) / (len(ours) + len(theirs))
    deviation = float(np.sqrt(pooled * (1 - pooled) * (1 / len(ours) + 1 / len(theirs))))
    gap = float(ours.mean() - theirs.mean())
    z = gap / deviation if deviation > 0 else 0.0
    return Missingness(len(missing), int(missing.sum()), float(ours.mean()), float(theirs.mean()), z)


def controlled(share: Floats, excess: Floats, logged: Logged, seed: int) -> Floats:
    """Returns the rows' shares in a value less a fitted baseline, (n,), which lowers the variance and has the mean 0.

    ``excess`` has mean zero given the query (a weight less 1, or the difference of two weights), so that
    excess · b(query) may be subtracted for any b that was fitted without the row's own group. b is linear in the
    covariates, by least squares on the other folds: the linear baseline of least variance. Rows with excess 0 keep
    their share untouched, so agreement stays an exact zero.
    """
    covariates, fold = cross_fitting(logged, seed)
    design = excess[:, None] * np.hstack((np.ones((len(share), 1)), covariates))  # (n, 1 + k)
    ridge = np.eye(design.shape[1]) * max(float(np.square(excess).mean()), 1e-12)
    result = share.copy()
    for number in range(FOLDS):
        out = fold == number
        rows, response = design[~out], share[~out]
        if len(response):
            coefficients = np.linalg.solve(rows.T @ rows + ridge, rows.T @ (response - response.mean()))
            result[out] -= design[out] @ coefficients
    return result


def cross_fitting(logged: Logged, seed: int) -> tuple[Floats, Ints]:
    """Returns the standardised covariates, (n, k), and the fold of each row, (n,): all rows of a group are in one."""
    groups, place = np.unique(logged.group, return_inverse=True)
    fold = (np.random.default_rng(seed).permutation(len(groups)) % FOLDS)[place]
    spread = logged.covariates.std(axis=0)
    return (logged.covariates - logged.covariates.mean(axis=0)) / np.where(spread > 0, spread, 1), fold


def difference_shares(logged: Logged, target: Target, other: Target, seed: int) -> Floats:
    """Returns each row's share in value(target) - value(other), (n,), less the baseline of ``controlled``."""
    excess = weights(logged, target) - weights(logged, other)
    return controlled(excess * logged.reward, excess, logged, seed)


def value_shares(logged: Logged, target: Target, seed: int) -> Floats:
    """Returns each row's share in the target policy's value, (n,), less the baseline of ``controlled``."""
    weight = weights(logged, target)
    return controlled(weight * logged.reward, weight - 1, logged, seed)


def estimate(shares: Mapping[str, Floats], group: Ints, resampling: Resampling) -> dict[str, Interval]:
    """Returns the mean of each named quantity's shares with its interval, all from the same resamples of groups."""
    sums = group_sums(np.column_stack([np.ones(len(group)), *shares.values()]), group)  # (groups, 1 + quantities)
    total = sums.sum(axis=0, keepdims=True)
    tables = total, resampled(sums, resampling), total - sums
    means = [np.divide(table, table[:, :1], out=np.zeros_like(table), where=table[:, :1] > 0) for table in tables]
    return {
        name: _bca([mean[:, column] for mean in means], resampling.level) for column, name in enumerate(shares, start=1)
    }


def resampled(sums: Floats, resampling: Resampling) -> Floats:
    """Returns the totals of the columns, (groups, k), in each bootstrap resample of the groups, (resamples, k)."""
    rng, groups = np.random.default_rng(resampling.seed), len(sums)
    step = max(1, CHUNK // max(groups, 1))
    parts = []
    for start in range(0, resampling.resamples, step):
        size = min(step, resampling.resamples - start)
        drawn = rng.integers(0, groups, size=(size, groups)) + np.arange(size)[:, None] * groups
        counts = np.bincount(drawn.ravel(), minlength=size * groups).reshape(size, groups)
        parts.append(counts.astype(np.float64) @ sums)
    return np.concatenate(parts)


def _bca(statistic: Sequence[Floats], level: float) -> Interval:
    """Returns the bias-corrected and accelerated interval (Efron 1987, eq. 2.3) of one statistic.

    ``statistic`` is its value, (1,), that of each resample, (resamples,), and the jackknife over groups, (groups,).
    """
    point, draws, left_out = statistic
    estimate = float(point[0])
    deviation = left_out.mean() - left_out
    spread = float(np.square(deviation).sum())
    if spread <= 1e-24:  # noqa: PLR2004 - rounding: the groups all say the same
        return Interval(estimate, estimate, estimate)
    acceleration = float((deviation**3).sum()) / (6 * spread**1.5)
    below = float((draws < estimate).mean() + (draws == estimate).mean() / 2)
    bias = NORMAL.inv_cdf(min(max(below, 1 / len(draws)), 1 - 1 / len(draws)))
    tails = []
    for z in (NORMAL.inv_cdf(1 - level), NORMAL.inv_cdf(level)):
        shifted = bias + z
        tails.append(NORMAL.cdf(bias + shifted / (1 - acceleration * shifted)))
    low, high = np.quantile(draws, tails)
    return Interval(estimate, float(low), float(high))
