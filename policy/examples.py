"""Training examples from logged slates, and the rule that divides a slate's outcome among its cases."""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]

LEAST_AGREED = 0.01
"""Number added to the square of a run's agreement with a case, so that without agreement all cases get equal shares."""
LARGEST_WEIGHT = 5.0
"""Largest weight of a decision, as a multiple of the median inverse propensity."""


@dataclass(frozen=True, slots=True, eq=False)
class Examples:
    """n rewarded decisions of one profile, in the order of time, with K places, D inputs of a case and G of a query.

    Attributes:
        inputs: (n, K, D), the network's inputs for the case in each place; arbitrary finite numbers for an empty place.
        prior: (n, K), the untrained default's log odds for the case in each place.
        credit: (n, K), each place's share of the outcome; sums to 1, or to 0 for an empty slate.
        query: (n, G), the network's inputs that describe the query.
        reward: (n,), 0 to 1, never missing: a missing reward is no example.
        weight: (n,), inverse propensity, clipped, with mean 1.
        group: (n,), number of the query; rows of one query are drawn, split and left out together.
    """

    inputs: Array
    prior: Array
    credit: Array
    query: Array
    reward: Array
    weight: Array
    group: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.reward)

    def take(self, rows: NDArray[np.bool_] | NDArray[np.int64]) -> "Examples":
        """Returns the examples at these row indices, or where this mask is true."""
        return Examples(**{field.name: getattr(self, field.name)[rows] for field in fields(self)})


def shared_credit(
    on_slate: NDArray[np.bool_], used: NDArray[np.bool_], said: NDArray[np.bool_], agreed: NDArray[np.floating]
) -> Array:
    """Returns each place's share of its decision's outcome, (n, K). Outcomes are credited by this rule alone.

    * If the backend reported which cases it used, the places of these cases share the outcome.
    * Without a report all places share it.
    * If the backend reported that it used no case, no place earns or loses, as on an empty slate.
    * The shares are proportional to LEAST_AGREED plus the square of the agreement of the run's plan with the case's: a
      case that only stood beside the one that the agent followed earns almost nothing, and is blamed for almost
      nothing.

    So the shares of a rewarded decision sum to 1, or to 0. An outcome is divided and not copied because it is one
    observation: copied to each of K used cases it would count K times, cases that did not help would get as certain a
    record as a case that did the work alone, and a backend that reports every case it was shown would count as much as
    K backends that report only the cases that helped. The sum of a case's shares is a number of outcomes, as a Beta
    posterior expects.

    The cases of a slate share one outcome. The procedures that were shown with it share the same outcome among
    themselves: procedures and cases have separate records, which are never compared.

    Training and the records of cases and procedures (``writer.rewards.credit``, ``writer.procedures.counters``) use
    this rule; ``retrieval.search.credit`` is the same rule in SQL.

    Args:
        on_slate: (n, K), true if the place is filled.
        used: (n, K), true if the backend reported that it used the case in the place.
        said: (n,), true if the backend reported which cases it used, if any.
        agreed: (n, K), agreement of the run's plan with the plan of the case, 0 to 1; NaN: unknown, which counts as 0.
    """
    sharing = np.where(said[:, None], used & on_slate, on_slate)
    weight = sharing * (LEAST_AGREED + np.fmax(agreed, 0.0) ** 2)
    return np.asarray(weight / np.maximum(weight.sum(axis=1, keepdims=True), LEAST_AGREED), dtype=np.float32)


def importance(propensity: NDArray[np.float64]) -> Array:
    """Returns the inverse propensities as weights with mean 1, (n,), clipped at LARGEST_WEIGHT times their median."""
    if not len(propensity):
        return np.zeros(0, np.float32)
    clipped = np.minimum(1 / propensity, LARGEST_WEIGHT * np.median(1 / propensity))
    return np.asarray(clipped / clipped.mean(), dtype=np.float32)


def split(group: NDArray[np.int64], share: float) -> NDArray[np.bool_]:
    """Returns which rows to hold out from training, (n,): all rows of the latest queries, about ``share`` of all rows.

    A query's time is that of its first row, so a held-out query never came before the queries that are trained on.
    """
    if not len(group):
        return np.zeros(0, dtype=bool)
    _, first, place = np.unique(group, return_index=True, return_inverse=True)
    cut = np.quantile(first[place], 1 - share)
    return np.asarray(first[place] > cut)
