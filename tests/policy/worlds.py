"""Logs with a known truth, for the tests of evaluation and gate."""

import numpy as np

from policy.evaluate import Interval, Resampling, difference_shares, estimate, value_shares
from policy.gate import Contest
from policy.logged import Logged, Target


def two_arms(n: int = 1000, uplift: float = 0.3, share: float = 0.25, agree: float = 0.4, seed: int = 0):
    """Returns (Logged, Contest): rewards .4 under the default; the candidate adds uplift where the slates differ."""
    rng = np.random.default_rng(seed)
    differs = rng.random(n) >= agree
    ours = rng.random(n) < share
    by_candidate = np.where(differs, ours, True).astype(float)
    by_default = np.where(differs, ~ours, True).astype(float)
    reward = (rng.random(n) < 0.4 + uplift * (differs & ours)).astype(float)
    logged = Logged(
        reward=reward,
        logged_propensity=(1 - share) * by_default + share * by_candidate,
        group=np.arange(n) // 2,
        segment=np.arange(n) % 3,
        covariates=np.zeros((n, 0)),
    )
    default = Target(by_default)
    candidate = Target(by_candidate, predicted=0.4 + uplift * differs)
    return logged, Contest(candidate, default, default)


def value(logged: Logged, target: Target, resampling: Resampling) -> Interval:
    """What the target would have earned per decision."""
    return estimate({"": value_shares(logged, target, resampling.seed)}, logged.group, resampling)[""]


def difference(logged: Logged, target: Target, other: Target, resampling: Resampling) -> Interval:
    """value(target) - value(other) per decision."""
    return estimate({"": difference_shares(logged, target, other, resampling.seed)}, logged.group, resampling)[""]
