"""The impact of memory: estimates the mean reward of the served slates less that of another policy's slates.

For n decisions, d is the mean over these decisions of the expected reward of the served slate less the expected reward
of the slate that the other policy would have served. Let w be the other policy's chance of the served slate divided by
the logged chance, and s the reward less a prediction for the query that was made without these rewards. Then

    z(d) = (1 - w) s - d w     has the sum 0 at the true d, and  d = sum (1 - w) s / sum w  estimates it:

The estimate is doubly robust (the chances alone make it right, whatever the prediction), and self-normalised (by the
sum of w), so that the number of empty slates drawn at random does not matter. Weights are not clipped: clipping gives a
narrower interval with an unknown error.

The other policy often serves empty slates, of which there are few, each with a weight of two hundred: no normal
quantile holds for them. So the interval comes from a bet. A bettor stakes a fixed amount on the sums of z by query
group, one sum after the other. If d is the truth, he is expected to keep at most the money he had, because a product of
independent factors 1 + stake · z whose z sum to 0 has a mean of at most exp(0). The interval leaves out each d against
which the bettor, on either side, multiplies his money by 2 / alpha (Markov's inequality). This holds for any number of
groups, for rewards that drift and for queries that are no random sample; groups must be independent, and the stake must
be fixed: it depends on the weights and the spread, not on the sign.

The interval holds for one look at the data. It is about 1.4 times as wide as a normal interval where that holds, too.

Sources: Waudby-Smith & Ramdas 2024 (intervals by betting); Waudby-Smith, Wu, Ramdas, Karampatziakis & Mineiro 2024
(the same off policy); Dudík, Langford & Li 2011 (doubly robust); Swaminathan & Joachims 2015 (self-normalised).
"""

from dataclasses import dataclass, replace

import numpy as np

from policy.evaluate import (
    FOLDS,
    clustered_mean,
    cross_fitting,
    effective_sample,
    group_sums,
    missingness,
    weights,
)
from policy.logged import Floats, Ints, Logged, Target
from policy.verdict import GateSettings

ALPHA = 0.05
"""Largest share of logs whose interval misses the truth."""
RIDGE = 10.0
"""Ridge penalty of the slopes by which rewards are predicted, as a number of decisions."""
MOST_LOST = 0.8
"""Largest share of the bettor's money that one query group can cost."""
LEAST_EFFECTIVE = 10.0
"""Least effective number of query groups that got the other policy's slate; with fewer there is no estimate."""
LIMITS = GateSettings()
"""The gate's limits, beyond which missing rewards or a lack of support make an estimate doubtful."""
HALVINGS = 30
STRENGTH = 2
"""Number of rewards that the mean of all rewards counts for against a query's own rewards."""
MOST_MORE = 1_000_000
"""Largest number of further decisions that is predicted; more count as never."""
TINY = 1e-12


@dataclass(frozen=True, slots=True)
class RewardDifference:
    """Mean reward of the served slates less that of another policy's slates, with a 95 % interval for one look.

    Attributes:
        decisions: number of decisions with a reward.
        other_slates: number of these decisions that got a slate of the other policy.
        effective: effective number of query groups that got the other policy's slate (Kish 1965).
        estimate, low, high: the difference and its interval, -1 to 1; None with too few decisions.
        more: number of further decisions until the interval excludes 0 if the estimate stays as it is; 0: it does
            already; None: unknown, or no number of decisions would do.
        doubt: reason to distrust the estimate, other than too few decisions; None without one.
    """

    decisions: int
    other_slates: int
    effective: float
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    more: int | None = None
    doubt: str | None = None

    @property
    def helped(self) -> bool | None:
        """True if the served slates earned more than the other policy's, False if less; None if that is undecided."""
        if self.doubt is not None or self.low is None or self.high is None or self.low <= 0 <= self.high:
            return None
        return self.low > 0


def difference(log: Logged, other: Target, least_chance: float) -> RewardDifference:
    """Returns the mean reward of the served slates less that of another policy's slates.

    Args:
        log: decisions in the order of time; covariates must be known before the slate was drawn.
        other: the other policy, with its chance of each served slate.
        least_chance: the smallest chance, above 0 to 1, with which any decision gets the other policy's slate. Its
            inverse bounds the weights, also those of rare slates that by chance the log does not have.
    """
    missing = missingness(log, Target(1 - other.target_probability), other)
    seen = np.isfinite(log.reward)
    log, other = log.take(seen), other.take(seen)
    weight = weights(log, other)
    measured = RewardDifference(
        len(weight), int((weight > 0).sum()), effective_sample(group_sums(weight, log.group)) if len(weight) else 0.0
    )
    if measured.effective < LEAST_EFFECTIVE:
        # decisions until there are enough of the other's slates, at the rate of the log or by design
        rate = measured.effective / measured.decisions if measured.effective >= 1 else least_chance
        more = int(np.ceil((LEAST_EFFECTIVE - measured.effective) / rate))
        return replace(measured, more=more if more < MOST_MORE else None)
    bettor = _Bettor.of(surprise(log), weight, log, 1 / least_chance)
    low, high = bettor.bound(-1), bettor.bound(1)
    measured = replace(measured, estimate=bettor.estimate, low=low, high=high)
    gap = abs(missing.rate_candidate - missing.rate_default)
    if abs(missing.z) > LIMITS.missing_z and gap > LIMITS.missing_gap:
        return replace(measured, doubt=f"rewards are missing more often on one side, by {gap:.0%} of its decisions")
    mean, error = clustered_mean(weight, log.group)
    if abs(mean - 1) > max(LIMITS.support_gap, LIMITS.support_z * error):
        return replace(
            measured, doubt=f"the log could not have served all of its slates: their mean weight is {mean:.2f}"
        )
    return replace(measured, more=_until_apart(measured))


def surprise(log: Logged) -> Floats:
    """Returns each reward less its prediction from the covariates, (n,), which is fitted to other groups' rewards.

    The prediction depends neither on the slate nor on any reward of the row's own group: it removes the noise that hard
    and easy queries cause, and favours no policy. Source: Chernozhukov et al. 2018 (cross-fitting).
    """
    result = np.empty_like(log.reward)
    seen, fold = cross_fitting(log, seed=0)
    for number in range(FOLDS):
        out = fold == number
        mean, rows = log.reward[~out].mean(), seen[~out]
        slope = np.linalg.solve(rows.T @ rows + RIDGE * np.eye(rows.shape[1]), rows.T @ (log.reward[~out] - mean))
        result[out] = log.reward[out] - np.clip(mean + seen[out] @ slope, 0, 1)
    return result


def known_before(at: Floats, group: Ints, reward: Floats) -> Floats:
    """Returns covariates of n decisions, (n, 2): time, and the mean reward of earlier decisions of the same query.

    Few earlier rewards are shrunk to the mean of all rewards, which is the same for every decision.

    Args:
        at: (n,), time of each decision, rising.
        group: (n,), number of each decision's query.
        reward: (n,), reward of each decision; NaN where it is missing.
    """
    overall = float(np.nanmean(reward)) if np.isfinite(reward).any() else 0.5
    totals: dict[int, tuple[float, int]] = {}
    went = np.zeros(len(at))
    for row, (query, earned) in enumerate(zip(group.tolist(), reward.tolist(), strict=True)):
        total, count = totals.get(query, (STRENGTH * overall, STRENGTH))
        went[row] = total / count
        if earned == earned:  # noqa: PLR0124 - NaN is the one number that is not itself
            totals[query] = total + earned, count + 1
    return np.column_stack((at, went))


def _until_apart(measured: RewardDifference) -> int | None:
    """Returns the number of further decisions until the interval excludes 0, if its width falls with their root."""
    if measured.helped is not None:
        return 0
    estimate, low, high = measured.estimate or 0.0, measured.low or 0.0, measured.high or 0.0
    if estimate == 0:
        return None
    reach = (estimate - low if estimate > 0 else high - estimate) / abs(estimate)
    more = measured.decisions * (reach**2 - 1)
    return int(np.ceil(more)) if more < MOST_MORE else None


@dataclass(frozen=True, slots=True, eq=False)
class _Bettor:
    """A bettor who bets that the true d lies near the estimate.

    Attributes:
        gained, weight: (groups,), sums of (1 - w) s, and of w, by query group.
        stake: best stake against a d just outside the interval, if the sums were normally distributed.
        worst: largest possible weight of a slate.
        lowest, highest: range of the rewards less their predictions.
    """

    gained: Floats
    weight: Floats
    stake: float
    worst: float
    lowest: float
    highest: float

    @classmethod
    def of(cls, surprise: Floats, weight: Floats, log: Logged, largest: float) -> "_Bettor":
        """Returns the bettor whose stake is best for the weights and the spread of this log."""
        gained, other = (group_sums(each, log.group) for each in ((1 - weight) * surprise, weight))
        estimate = float(gained.sum() / other.sum())
        worst = max(largest, float(other.max()))
        spread = np.square(gained - estimate * other).sum() + worst**2 * surprise.var()  # as if one more had come
        stake = float(np.sqrt(2 * np.log(2 / ALPHA) / max(spread, TINY)))
        return cls(gained, other, stake, worst, float(surprise.min()), float(surprise.max()))

    @property
    def estimate(self) -> float:
        """Estimate of d: the sums of z by query group add up to 0 at it."""
        return float(np.clip(self.gained.sum() / self.weight.sum(), -1, 1))

    def bound(self, side: int) -> float:
        """Returns the bound of the interval of d on this side of the estimate, -1 to 1; ``side`` is -1 or 1."""
        inside, outside = self.estimate, float(side)
        if self.money(outside, side) < np.log(2 / ALPHA):
            return outside
        for _ in range(HALVINGS):
            middle = (inside + outside) / 2
            is_out = self.money(middle, side) >= np.log(2 / ALPHA)
            inside, outside = (inside, middle) if is_out else (middle, outside)
        return outside

    def money(self, d: float, side: int) -> float:
        """Returns the logarithm of the money after a bet that the truth lies nearer to the estimate than ``d``."""
        won = -side * (self.gained - d * self.weight)
        loss = self.highest + d if side < 0 else -self.lowest - d  # of one slate of weight 1, at most
        most = max(float(-won.min(initial=0)), self.worst * loss, TINY)
        return float(np.log1p(min(self.stake, MOST_LOST / most) * won).sum())
