"""Examples for training, from logged slates, and the rule that shares a slate's outcome among its cases."""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]

LEAST_AGREED = 0.01
"""Number added to the square of a run's agreement with a case, so that without agreement all cases share alike."""


@dataclass(frozen=True, slots=True, eq=False)
class Examples:
    """n rewarded decisions of one profile, in the order of time; K places, D inputs of a case, G of a query.

    Attributes:
        inputs: (n, K, D), of the case in each place; arbitrary finite numbers for an empty place.
        prior: (n, K), the default's log odds of the case.
        credit: (n, K), each place's share of the outcome; sums to 1, or to 0 for an empty slate.
        query: (n, G).
        reward: (n,), 0 to 1, never missing: a missing reward is no example.
        weight: (n,), inverse propensity, clipped, with mean 1.
        empty: (n,), true if the slate was left empty although there were cases.
        group: (n,), the query; rows of one group are drawn, split and left out together.
    """

    inputs: Array
    prior: Array
    credit: Array
    query: Array
    reward: Array
    weight: Array
    empty: NDArray[np.bool_]
    group: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.reward)

    def take(self, rows: NDArray[np.bool_] | NDArray[np.int64]) -> "Examples":
        """Returns the subset of the examples at these row indices, or where the mask is true."""
        return Examples(**{field.name: getattr(self, field.name)[rows] for field in fields(self)})


def shared_credit(
    on_slate: NDArray[np.bool_], used: NDArray[np.bool_], said: NDArray[np.bool_], agreed: NDArray[np.floating]
) -> Array:
    """Returns each place's share of its decision's outcome, (n, K): the one rule by which outcomes are credited.

    * If the backend reported what it used, the used places share the outcome.
    * Without a report all places do.
    * If it reported that it used no place, no place earns or loses, as on an empty slate.
    * Shares are by LEAST_AGREED and the square of the run's agreement with the case: a case that only stood beside the
      one that the agent followed earns almost nothing, and is blamed for almost nothing.

    So the shares of a rewarded decision sum to 1, or to 0. An outcome is divided and not copied because it is one
    observation: copied to each of K used cases it would count K times, cases that only rode along would grow as sure a
    record as one that did the work alone, and a backend that names everything it was shown would be worth K of those
    that name what helped. Whoever adds the shares up has counted outcomes, which is what a Beta posterior expects.

    The cases of a slate share one outcome, and so do, apart from them, the procedures that were shown with it: the two
    have records of their own, which are never held against each other.

    What trains (here) and the records of cases and procedures (``writer.rewards.credit``,
    ``writer.procedures.counters``) go by it; ``retrieval.search.credit`` is its twin in SQL.

    Args:
        on_slate: (n, K), true if the place is filled.
        used: (n, K), true if the backend reported that it used the place.
        said: (n,), true if it reported uses at all.
        agreed: (n, K), agreement of the run's plan with the case's, 0 to 1; NaN: unknown, which counts as 0.
    """
    sharing = np.where(said[:, None], used & on_slate, on_slate)
    weight = sharing * (LEAST_AGREED + np.fmax(agreed, 0.0) ** 2)
    return np.asarray(weight / np.maximum(weight.sum(axis=1, keepdims=True), LEAST_AGREED), dtype=np.float32)


def importance(propensity: NDArray[np.float64], clip: float = 5.0) -> Array:
    """Returns inverse propensities, (n,), clipped at ``clip`` times their median, with mean 1."""
    raw = 1 / propensity
    clipped = np.minimum(raw, clip * np.median(raw)) if len(raw) else raw
    return (clipped / clipped.mean()).astype(np.float32) if len(raw) else clipped.astype(np.float32)


def split(group: NDArray[np.int64], share: float) -> NDArray[np.bool_]:
    """Returns which rows are held out, (n,): about ``share`` of them, the latest queries, and no query on both sides.

    A query goes with its first row, so that every held-out query is one that was new at the time.
    """
    if not len(group):
        return np.zeros(0, dtype=bool)
    _, first, place = np.unique(group, return_index=True, return_inverse=True)
    cut = np.quantile(first[place], 1 - share)
    return np.asarray(first[place] > cut)
