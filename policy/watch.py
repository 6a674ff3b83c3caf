"""Watches a promoted policy: tells when to roll it back because its live reward fell below the gate's lower bound."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from policy.logged import EvaluationError, Floats


@dataclass(frozen=True, slots=True)
class Watch:
    """The result of watching a promoted policy.

    Attributes:
        roll_back: true if the policy should be rolled back.
        decisions: number of its decisions with a reward that were watched this time.
        mean: mean reward of these decisions; None without one.
        evidence: largest mean wealth that the bets against the floor had; they start with 1; at 1 / ``false_alarm`` the
            policy is rolled back.
        wealth: wealth of each stake's bets after these decisions, from which the next watch goes on.
    """

    roll_back: bool
    decisions: int
    mean: float | None
    evidence: float
    at: int | None
    """Number of the rewarded decision, from 1, after which the rollback was due; None if it is not due."""
    wealth: tuple[float, ...]


STAKES = (0.025, 0.05, 0.1, 0.2, 0.4, 0.8)
"""Stakes of the bets, as shares of the largest stake that cannot ruin the bettor.

Small stakes find small declines late, large stakes find large declines at once."""
LEAST_LOSS = 0.05
"""Least loss per stake for which the largest stake is computed; it bounds the stakes if the floor is near 1."""


BEGIN = (1.0,) * len(STAKES)
"""Wealth of the bets before the first reward."""
MOST = 1e300
"""Largest wealth that is kept."""


def watch(rewards: Floats, floor: float, wealth: Sequence[float] = BEGIN, false_alarm: float = 0.01) -> Watch:
    """Returns whether a promoted policy's live reward has fallen below its floor.

    One may call it after every decision, without end, each time with the rewards that came since the last time and the
    wealth that it left: as long as the expected reward is at least ``floor`` whatever
    came before, the chance that any call advises a rollback is at most ``false_alarm``. A bettor against the floor
    multiplies his wealth by 1 + stake (floor - reward) at each reward. Averaged over `STAKES`, the wealth is a
    supermartingale as long as the floor holds, and Ville's inequality bounds the chance that it reaches 1 /
    ``false_alarm``.

    Source: Waudby-Smith & Ramdas 2023, Estimating means of bounded random variables by betting, §4.
    """
    if not np.isfinite(floor) or np.isinf(rewards).any():
        raise EvaluationError("the floor and the rewards are numbers; only a reward may be missing")
    seen = rewards[np.isfinite(rewards)]
    if not len(seen):
        return Watch(
            roll_back=False, decisions=0, mean=None, evidence=float(np.mean(wealth)), at=None, wealth=tuple(wealth)
        )
    stakes = np.array(STAKES) / max(1 - floor, LEAST_LOSS)
    gains = np.cumsum(np.log1p(stakes[:, None] * (floor - seen)[None, :]), axis=1)  # (stakes, n)
    logs = np.log(np.array(wealth))[:, None] + gains
    course = np.exp(np.clip(logs, -np.log(MOST), np.log(MOST)))
    mean = course.mean(axis=0)
    due = np.flatnonzero(mean >= 1 / false_alarm)
    return Watch(
        roll_back=bool(len(due)),
        decisions=len(seen),
        mean=float(seen.mean()),
        evidence=float(mean.max()),
        at=int(due[0]) + 1 if len(due) else None,
        wealth=tuple(course[:, -1].tolist()),
    )
