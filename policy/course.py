"""The course of a policy's trial: the looks at the difference of two policies' rewards, and the chance that one passes.

A look is an interim test on a fixed number of the trial's first rewards, in the order in which they came: repeated on
the log it gives the same result, also where rewards come late, unless one was revised. So no state is kept between two
nights.

Sources: Lan, Simon & Halperin 1982 (stochastic curtailment); Spiegelhalter, Freedman & Blackburn 1986 (predictive
power, here with a flat prior). Ending a trial early can only lower the chance of a false promotion.
"""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from policy.evaluate import clustered_mean, difference_shares
from policy.logged import Logged, Target
from policy.spending import Spending, bounds

NORMAL = NormalDist()
LEAST_NEWS = 1.01
"""Least factor of a look's information over the last look's; a look with less is skipped, and spends no error."""

Enough = Callable[[Logged, Target, Target], bool]
"""Function that returns whether a log has enough decisions of both policies for a look."""


@dataclass(frozen=True, slots=True)
class Look:
    """An interim test of the difference of two policies' rewards, on a log's first decisions.

    Attributes:
        decisions: number of the log's first rewarded decisions, which the look uses.
        difference: estimate of the first policy's mean reward less the second's.
        error: standard error of the difference, clustered by query.
        bound: number of standard errors above zero that the difference must reach for the look to pass.
    """

    decisions: int
    difference: float
    error: float
    bound: float

    @property
    def z(self) -> float:
        """Number of standard errors by which the difference lies above zero."""
        return self.difference / self.error

    @property
    def passed(self) -> bool:
        """True if the difference reached the look's bound."""
        return self.z >= self.bound


@dataclass(frozen=True, slots=True)
class Course:
    """The looks at one difference over a trial, and the trial's prospects.

    Attributes:
        looks: the looks so far, in order.
        more: number of further decisions until a look passes if the difference stays as it is; 0: a look has passed;
            None: no look would pass before the trial's end.
        chance: probability that a look ever passes if the trial goes on; None before the first look.
    """

    looks: tuple[Look, ...]
    more: int | None
    chance: float | None

    @property
    def passing(self) -> Look | None:
        """First look that passed; None if none has."""
        return next((look for look in self.looks if look.passed), None)


def course_of(log: Logged, pair: tuple[Target, Target], spending: Spending, seed: int, enough: Enough) -> Course:
    """Returns the course of the difference between two policies' values.

    Args:
        log: the trial's rewarded decisions, in the order in which their rewards came.
        pair: the two policies; the second's value is subtracted from the first's.
        spending: settings of the looks, and of the chance of error that each may spend.
        seed: seed of the cross-fitting.
        enough: check that the first decisions have enough of both policies for a look.
    """
    seen: list[tuple[int, float, float]] = []
    alike = False
    for decisions in spending.looks():
        if decisions > len(log.reward):
            break
        rows = np.arange(len(log.reward)) < decisions
        first, (mine, theirs) = log.take(rows), (target.take(rows) for target in pair)
        if not enough(first, mine, theirs):
            continue
        difference, error = clustered_mean(difference_shares(first, mine, theirs, seed), first.group)
        alike = error <= 0
        if not alike and (not seen or seen[-1][2] ** 2 >= LEAST_NEWS * error**2):
            seen.append((decisions, difference, error))
    if not seen:
        return Course((), None, 0.0 if alike else None)
    decisions, difference, _ = seen[-1]
    later = np.array([count for count in spending.looks() if count > len(log.reward)], dtype=np.float64)
    taken = np.array([count for count, _, _ in seen], dtype=np.float64)
    information = np.array([error**-2.0 for _, _, error in seen])
    to_come = information[-1] * later / decisions
    limits = bounds(np.concatenate((information, to_come)), spending.spent(np.concatenate((taken, later))))
    looks = tuple(Look(*look, float(bound)) for look, bound in zip(seen, limits, strict=False))
    if any(look.passed for look in looks):
        return Course(looks, 0, 1.0)
    ahead = limits[len(seen) :]
    passes = later[difference * np.sqrt(to_come) >= ahead]
    more = int(passes[0]) - len(log.reward) if len(passes) else None
    # the chance that the most promising future look passes, averaged over the possible true differences
    growth = to_come - information[-1]
    spread = np.sqrt(growth + growth**2 / information[-1])  # of the score: chance to come, and doubt about the truth
    short = (ahead * np.sqrt(to_come) - difference * to_come) / spread
    return Course(looks, more, max((NORMAL.cdf(-float(each)) for each in short), default=0.0))
