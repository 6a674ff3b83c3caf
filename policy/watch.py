"""The watch over a promoted policy: it goes when its live reward falls below what it was promoted on."""

from dataclasses import dataclass

import numpy as np

from policy.logged import Floats, NotFinite


@dataclass(frozen=True, slots=True)
class Watch:
    """The live rewards of a promoted policy; ``evidence`` is the largest wealth of the bets against it."""

    roll_back: bool
    decisions: int
    mean: float | None
    floor: float
    evidence: float
    limit: float
    at: int | None
    """The decision, 1-based, after which the rollback was due; None while it is not."""


STAKES = (0.025, 0.05, 0.1, 0.2, 0.4, 0.8)
"""Shares of the largest bet that cannot ruin: small ones find small falls late, large ones large falls at once."""
LEAST_LOSS = 0.05
"""Least loss of a bet, which bounds the bets if the floor is near 1."""


def watch(rewards: Floats, floor: float, false_alarm: float = 0.01) -> Watch:
    """Returns whether the live reward has fallen below ``floor``, the lower bound of the value at promotion.

    The rewards are those of all decisions served since, in order, 0 to 1, NaN where missing. It may be called after
    every decision, for ever: while the expected reward is at least ``floor`` whatever came before, the chance of any
    rollback is at most ``false_alarm``. A bettor against the floor multiplies its wealth by
    1 + stake (floor - reward), a supermartingale as long as the floor holds, averaged over `STAKES`; Ville's
    inequality bounds its reaching 1 / ``false_alarm``.

    Source: Waudby-Smith & Ramdas 2023, Estimating means of bounded random variables by betting, §4.
    """
    if not np.isfinite(floor) or np.isinf(rewards).any():
        raise NotFinite("the floor and the rewards are numbers; only a reward may be missing")
    seen = rewards[np.isfinite(rewards)]
    limit = 1 / false_alarm
    if not len(seen):
        return Watch(roll_back=False, decisions=0, mean=None, floor=floor, evidence=1.0, limit=limit, at=None)
    stakes = np.array(STAKES) / max(1 - floor, LEAST_LOSS)
    logs = np.cumsum(np.log1p(stakes[:, None] * (floor - seen)[None, :]), axis=1)  # (stakes, n)
    wealth = np.exp(np.minimum(logs, 700.0)).mean(axis=0)  # e^700 is the largest float
    due = np.flatnonzero(wealth >= limit)
    return Watch(
        roll_back=bool(len(due)),
        decisions=len(seen),
        mean=float(seen.mean()),
        floor=floor,
        evidence=float(min(wealth.max(), 1e300)),
        limit=limit,
        at=int(due[0]) + 1 if len(due) else None,
    )
