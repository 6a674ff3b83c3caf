"""The worth of reusing a run for a query, by a measure that shares no code with the ranking.

If the measure were the feature that it judges, an order by that feature would win by definition. So this module
compares plans by itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from policy.logged import Floats, Ints

PLACES = 4
DISCOUNT = 1 / np.log2(np.arange(2, PLACES + 2))  # (PLACES,)


@dataclass(frozen=True, slots=True, eq=False)
class Worth:
    """The worth of the candidates to a query.

    Attributes:
        utility: (k,), the worth of each, 0 to 1; a policy that learns from outcomes never sees it.
        ideal: the best DCG@4 that the whole bank allows; 0: no case of it is of use.
        fixed: nDCG@4 of each fixed rule over the whole bank; empty where ideal is 0.
    """

    utility: Floats
    ideal: float
    fixed: Mapping[str, float]

    def ndcg(self, chosen: Ints) -> float:
        """Returns nDCG@4 of the chosen candidates against the best that the bank allows."""
        return ndcg(self.utility, chosen, self.ideal)


def agreement(plan: Floats, others: Floats) -> Floats:
    """Returns the F1 of one plan, (t,), with each other, (m, t), as multisets of tools, (m,).

    To change nothing is a plan: two that rightly change nothing agree.
    """
    shared, total = np.minimum(plan, others).sum(axis=1), plan.sum() + others.sum(axis=1)
    f1: Floats = np.where(total > 0, 2 * shared / np.maximum(total, 1), 1.0)
    return f1


def ideal(utility: Floats) -> float:
    """Returns the DCG@4 of the best order of a whole bank."""
    best = np.sort(utility)[::-1][:PLACES]
    return float(best @ DISCOUNT[: len(best)])


def ndcg(utility: Floats, chosen: Ints, best: float) -> float:
    """Returns nDCG@4 of the chosen, best first, where the best order reaches ``best``."""
    return float(utility[chosen] @ DISCOUNT[: len(chosen)] / best)
