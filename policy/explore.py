"""Exploration: at most one place of the slate is drawn by lot, and the chance of every outcome is known exactly."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policy.slate import Field, Slate, contenders

NULL_SHARE = 0.1
"""Share of the exploration budget that returns nothing, so that the worth of memory itself is seen."""
TEMPERATURE = 0.5
"""Of the softmax over scores (log odds) among the contenders: the higher, the more evenly they are tried."""


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
    """Returns the lottery that gives the slate, and with chance ``budget`` one whose last place is drawn.

    The draw is a softmax over the contenders' scores, as the Gumbel-max trick draws it (Gumbel 1954), and
    sometimes leaves the slate empty. Without a contender besides who is there, only that remains to try.
    """
    if not slate or budget <= 0:
        return certain(slate)
    rivals = contenders(field, ordered, slate)
    weight = np.exp((scores[rivals] - scores[rivals].max()).astype(np.float64) / TEMPERATURE)
    drawn = {(*slate[:-1], index): share for index, share in zip(rivals, weight / weight.sum(), strict=True)}
    parts = [certain(slate), Lottery(drawn), certain(())]
    return mixture([1 - budget, budget * (1 - NULL_SHARE), budget * NULL_SHARE], parts)


def unless_empty(slate: Slate, budget: float) -> Lottery:
    """Returns the lottery of a policy that would serve nothing: with chance ``budget`` it gives this slate instead.

    Else nobody would ever see that memory has begun to help.
    """
    return mixture([1 - budget, budget], [certain(()), certain(slate)])


def mixture(shares: Sequence[float], lotteries: Sequence[Lottery]) -> Lottery:
    """Returns the lottery of drawing one of the lotteries by their shares, which sum to 1, and then from it."""
    chances: dict[Slate, float] = {}
    for share, lottery in zip(shares, lotteries, strict=True):
        for slate, chance in lottery.chances.items():
            if share * chance > 0:
                chances[slate] = chances.get(slate, 0.0) + share * chance
    return Lottery(chances)
