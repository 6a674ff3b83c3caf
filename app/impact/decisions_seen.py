"""Logged decisions as arrays, for the estimator of an impact."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from policy.explore import NULL_SHARE
from policy.logged import Floats, Logged, Target
from policy.reward_difference import RewardDifference, difference, known_before
from writer.training.decision_log import group_of

RARE = 1e-6
"""Probability used for slates that are never explored."""


@dataclass(frozen=True, slots=True, eq=False)
class DecisionsSeen:
    """Decisions that had candidates, in order of time, with the empty slate as the alternative to compare with."""

    logged: Logged
    at: Floats
    empty: Target
    least_chance: float

    @property
    def rewards(self) -> Floats:
        """Rewards of the rewarded decisions."""
        return self.logged.reward[np.isfinite(self.logged.reward)]

    def has_any(self, since: datetime, until: datetime) -> bool:
        """Returns whether there is a decision in the time span; ``until`` is exclusive."""
        return bool(np.any((self.at >= since.timestamp()) & (self.at < until.timestamp())))

    def less_empty(self, before: datetime | None = None) -> RewardDifference:
        """Returns the reward of the served slates less that of empty ones, before a time; None: over all decisions."""
        if before is None:
            return difference(self.logged, self.empty, self.least_chance)
        rows = self.at < before.timestamp()
        return difference(self.logged.take(rows), self.empty.take(rows), self.least_chance)


def seen_in(rows: Sequence[Any], explore: float) -> DecisionsSeen:
    """Returns the decisions for the estimator, with time and earlier rewards of the query as covariates.

    ``rows`` have the columns of ``retrieval.pages.impact.earned``, the oldest first.

    ``explore`` is the profile's share of explored slates now. It sets the least probability of an empty slate, together
    with the empty slates that were drawn: at the time the share may have been another, or is 0 by now.
    """
    reward = np.array([np.nan if row.reward is None else row.reward for row in rows], dtype=np.float64)
    group = np.array(
        [group_of(row.query) if row.query_group is None else row.query_group for row in rows], dtype=np.int64
    )
    at = np.array([row.created_at.timestamp() for row in rows], dtype=np.float64)
    empty = np.array([row.is_empty for row in rows], dtype=np.float64)
    chance = np.array([row.slate_propensity for row in rows], dtype=np.float64)
    logged = Logged(reward, chance, group, np.zeros(len(rows), np.int64), covariates=known_before(at, group, reward))
    drawn = chance[(empty > 0) & (chance < 2 * NULL_SHARE)]  # others were left empty by rule, with chance 1
    least = min([*drawn.tolist(), *([explore * NULL_SHARE] if explore else [])], default=RARE)
    return DecisionsSeen(logged, at, Target(empty), max(least, RARE))
