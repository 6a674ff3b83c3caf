"""Watches a promoted policy: tells when to roll it back because its live reward fell below the gate's lower bound."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from policy.logged import EvaluationError, Floats

STAKES = (0.025, 0.05, 0.1, 0.2, 0.4, 0.8)
"""Stakes of the bets, as shares of the largest stake that cannot ruin the bettor.

Small stakes find small declines late, large stakes find large declines at once."""
LEAST_LOSS = 0.05
"""Least loss per stake for which the largest stake is computed; it bounds the stakes if the floor is near 1."""
BEGIN = (1.0,) * len(STAKES)
"""Wealth of the bets before the first reward."""
MOST = 1e300
"""Largest wealth that is kept."""
FALSE_ALARM = 0.01
"""Largest chance that a policy which keeps its floor is ever rolled back."""


@dataclass(frozen=True, slots=True)
class Watch:
    """The result of watching a promoted policy.

    Attributes:
        roll_back: true if the policy should be rolled back.
        evidence: largest mean wealth that the bets against the floor had; they start with 1; at 1 / FALSE_ALARM the
            policy is rolled back.
        wealth: wealth of each stake's bets after the rewards, from which the next watch goes on.
    """

    roll_back: bool
    evidence: float
    wealth: tuple[float, ...]


def watch(rewards: Floats, floor: float, wealth: Sequence[float] = BEGIN) -> Watch:
    """Returns whether a promoted policy's live reward has fallen below its floor.

    One may call it after every decision, without end, each time with the rewards that came since the last time and the
    wealth that it left: as long as the expected reward is at least ``floor`` whatever came before, the chance that any
    call advises a rollback is at most FALSE_ALARM. A bettor against the floor multiplies his wealth by
    1 + stake (floor - reward) at each reward; a missing reward is no bet. Averaged over `STAKES`, the wealth is a
    supermartingale as long as the floor holds, and Ville's inequality bounds the chance that it reaches
    1 / FALSE_ALARM.

    Source: Waudby-Smith & Ramdas 2023, Estimating means of bounded random variables by betting, §4.
    """
    if not np.isfinite(floor) or np.isinf(rewards).any():
        raise EvaluationError("the floor and the rewards are numbers; only a reward may be missing")
    losses = floor - rewards[np.isfinite(rewards)]
    stakes = np.array(STAKES) / max(1 - floor, LEAST_LOSS)
    gains = np.log1p(stakes[:, None] * losses[None, :])
    logs = np.cumsum(np.column_stack((np.log(np.array(wealth)), gains)), axis=1)  # (stakes, 1 + n)
    course = np.exp(np.clip(logs, -np.log(MOST), np.log(MOST)))
    evidence = float(course.mean(axis=0).max())
    return Watch(evidence >= 1 / FALSE_ALARM, evidence, tuple(course[:, -1].tolist()))
