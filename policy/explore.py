"""Exploration: draws at most one place of a slate at random, and computes the exact chance of every possible slate.

There are three random draws. One tests other orders: it draws the last place among the cases that contend for it. One
tries unproven cases that wait in quarantine: otherwise a new case among proven ones would never be used, and so never
proven. The share of places for such cases is fixed, however many of them wait. And some slates are left empty, to
measure rewards without memory.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policy.slate import Slate, Traits, contenders, waiting

NULL_SHARE = 0.1
"""Share of the exploration budget that measures memory itself: these decisions get an empty slate."""
TEMPERATURE = 0.5
"""Temperature of the softmax over the contenders' scores (log odds): a higher temperature tries them more evenly."""
WAITING_PLACES = 0.5
"""Share of all places for cases that wait in quarantine, as a multiple of the exploration budget: 2.5 % of places for a
budget of 5 %."""
WAITING_SLATES = 2.0
"""Largest share of slates that try a case from quarantine, as a multiple of the exploration budget."""


@dataclass(frozen=True, slots=True)
class Lottery:
    """The slates that may be drawn for a query, and the chance of each; the chances sum to 1."""

    chances: Mapping[Slate, float]

    def draw(self, rng: np.random.Generator) -> Slate:
        """Draws one slate; the same state of the generator gives the same slate."""
        slates = list(self.chances)
        return slates[rng.choice(len(slates), p=np.array([self.chances[slate] for slate in slates]))]

    def chance(self, slate: Slate) -> float:
        """Returns the propensity of a slate: the chance that exactly this slate is drawn."""
        return self.chances.get(slate, 0.0)

    def place_chance(self, place: int, index: int) -> float:
        """Returns the chance that a drawn slate has the candidate in this place, which counts from 0."""
        return sum(p for slate, p in self.chances.items() if len(slate) > place and slate[place] == index)


def certain(slate: Slate) -> Lottery:
    """Returns the lottery whose only slate is this one."""
    return Lottery({slate: 1.0})


def explored(traits: Traits, scores: NDArray[np.float32], ordered: list[int], slate: Slate, budget: float) -> Lottery:
    """Returns the lottery that mostly gives the policy's slate, and otherwise one that explores.

    With chance ``budget`` the slate's last place is drawn among its contenders, or, in NULL_SHARE of these draws, the
    slate is left empty. If unproven cases wait in quarantine, one of them gets the last place of some further slates.

    Args:
        traits: traits of the n candidates.
        scores: (n,), score of each candidate, in log odds.
        ordered: indices of the allowed candidates, the best first.
        slate: the slate that the policy would serve.
        budget: share of decisions that explore, 0 to 1.
    """
    if not slate or budget <= 0:
        return certain(slate)
    drawn = _last_drawn(slate, scores, contenders(traits, ordered, slate))
    parts = [(budget * (1 - NULL_SHARE), drawn), (budget * NULL_SHARE, certain(()))]
    if young := waiting(traits, ordered, slate):
        share = min(WAITING_PLACES * len(slate), WAITING_SLATES) * budget
        parts.append((min(share, 1 - budget), _last_drawn(slate, scores, young)))
    rest = 1 - sum(share for share, _ in parts)
    return compound([rest, *(share for share, _ in parts)], [certain(slate), *(lottery for _, lottery in parts)])


def _last_drawn(slate: Slate, scores: NDArray[np.float32], rivals: list[int]) -> Lottery:
    """Returns the lottery of slates whose last place is drawn by a softmax over the rivals' scores (Gumbel 1954)."""
    weight = np.exp((scores[rivals] - scores[rivals].max()).astype(np.float64) / TEMPERATURE)
    return Lottery({(*slate[:-1], index): share for index, share in zip(rivals, weight / weight.sum(), strict=True)})


def compound(shares: Sequence[float], lotteries: Sequence[Lottery]) -> Lottery:
    """Returns the compound lottery: it draws a lottery by its share, and then a slate from it; the shares sum to 1."""
    chances: dict[Slate, float] = {}
    for share, lottery in zip(shares, lotteries, strict=True):
        for slate, chance in lottery.chances.items():
            if share * chance > 0:
                chances[slate] = chances.get(slate, 0.0) + share * chance
    return Lottery(chances)
