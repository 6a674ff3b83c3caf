"""Exploration: at most one place of the slate is drawn by lot, and the chance of every outcome is known exactly.

Three lots are drawn. One asks whether another order would do better: it tries the contenders for the last place. One
lets unproven cases that wait in quarantine become known: else a young honest one among proven ones would never be
used, and never proven. Their share of all places is fixed, however many of them wait. And some slates are left empty,
to see what is done without memory.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policy.slate import Field, Slate, contenders, waiting

NULL_SHARE = 0.1
"""Share of the exploration budget that measures memory itself: it returns an empty slate where a policy would serve
cases, and the cases where the policy would serve an empty slate."""
TEMPERATURE = 0.5
"""Temperature of the softmax over the contenders' scores (log odds): a higher one tries them more evenly."""
WAITING_PLACES = 0.5
"""Share of all places for waiting cases, in exploration budgets: 2.5 % if that is 5 %."""
WAITING_SLATES = 2.0
"""Largest share of slates that try a waiting case, in exploration budgets."""


@dataclass(frozen=True, slots=True)
class Lottery:
    """Slates and their chances, which sum to 1."""

    chances: Mapping[Slate, float]

    def draw(self, rng: np.random.Generator) -> Slate:
        """Returns one slate; the same generator state draws the same one."""
        slates = list(self.chances)
        return slates[rng.choice(len(slates), p=np.array([self.chances[slate] for slate in slates]))]

    def chance(self, slate: Slate) -> float:
        """Returns the propensity of the whole slate."""
        return self.chances.get(slate, 0.0)

    def place_chance(self, place: int, index: int) -> float:
        """Returns the propensity of the candidate in the place, 0-based, over all slates."""
        return sum(p for slate, p in self.chances.items() if len(slate) > place and slate[place] == index)


def certain(slate: Slate) -> Lottery:
    """Returns the lottery that always gives this slate."""
    return Lottery({slate: 1.0})


def explored(field: Field, scores: NDArray[np.float32], ordered: list[int], slate: Slate, budget: float) -> Lottery:
    """Returns the lottery that gives the slate, with chance ``budget`` one whose last place is drawn, or none at all.

    The draw sometimes leaves the slate empty; without a contender besides who is there, only that remains to try.
    Where unproven cases wait, one of them has the last place of some further slates.
    """
    if not slate or budget <= 0:
        return certain(slate)
    drawn = _last_drawn(slate, scores, contenders(field, ordered, slate))
    parts = [(budget * (1 - NULL_SHARE), drawn), (budget * NULL_SHARE, certain(()))]
    if young := waiting(field, ordered, slate):
        share = min(WAITING_PLACES * len(slate), WAITING_SLATES) * budget
        parts.append((min(share, 1 - budget), _last_drawn(slate, scores, young)))
    rest = 1 - sum(share for share, _ in parts)
    return mixture([rest, *(share for share, _ in parts)], [certain(slate), *(lottery for _, lottery in parts)])


def _last_drawn(slate: Slate, scores: NDArray[np.float32], rivals: list[int]) -> Lottery:
    """Returns the lottery of the last place: a softmax over the rivals' scores, as Gumbel-max has it (Gumbel 1954)."""
    weight = np.exp((scores[rivals] - scores[rivals].max()).astype(np.float64) / TEMPERATURE)
    return Lottery({(*slate[:-1], index): share for index, share in zip(rivals, weight / weight.sum(), strict=True)})


def unless_empty(slate: Slate, budget: float) -> Lottery:
    """Returns the lottery of a policy that would serve nothing: by a part of the budget it gives this slate instead.

    Few are enough: the decisions that stay with the default show as well that memory has begun to help.
    """
    share = budget * NULL_SHARE
    return mixture([1 - share, share], [certain(()), certain(slate)])


def mixture(shares: Sequence[float], lotteries: Sequence[Lottery]) -> Lottery:
    """Returns the lottery of drawing one of the lotteries by their shares, which sum to 1, and then from it."""
    chances: dict[Slate, float] = {}
    for share, lottery in zip(shares, lotteries, strict=True):
        for slate, chance in lottery.chances.items():
            if share * chance > 0:
                chances[slate] = chances.get(slate, 0.0) + share * chance
    return Lottery(chances)
