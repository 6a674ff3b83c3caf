"""The numbers that a replay stores for serving: the order that serves, and weights of terms, channels and moves."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policy.agreement import Matrix, Rarity, agreement, looked_up, rarity
from policy.channels import LEAST_GAIN, Terms, gain, idf, incidence
from policy.history import History
from policy.orders import START

FIRST_ORDER = "vote"
"""Name of the order of a bank that was never replayed, unless an operator sets another: the best on average in
``python -m bench replay``."""


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """The numbers of a bank that serving needs, computed from the runs that a replay read.

    Attributes:
        order: name of the order that serves, a key of ``policy.orders.ORDERS``.
        weights: (4,), weight of each channel in the mixture.
        runs: number of runs that the replay read.
        terms: (k,), terms that at least two runs have, sorted.
        having: (k,), number of runs that have each term.
        gains: (k,), gain of each term, 0 to 1: how much more than usual the plans of two runs that share it agree.
        proven: share of the runs that went well that others than the run confirm, 0 to 1.
        times: (runs,), seconds since 1970 at which each run was retained, sorted.
    """

    order: str
    weights: NDArray[np.float32]
    runs: int
    terms: Terms
    having: Matrix
    gains: Matrix
    moves: Rarity
    proven: float
    times: NDArray[np.float64]

    def rare(self, terms: Terms) -> Matrix:
        """Returns the weights of these terms for the channel ``rare``, (1, t)."""
        return idf(float(max(self.runs, 1)), looked_up(self.terms, self.having, 1.0, terms))[None]

    def telling(self, terms: Terms) -> Matrix:
        """Returns the weights of these terms for the channel ``telling``, (1, t)."""
        gains = looked_up(self.terms, self.gains, 0.0, terms)
        return np.asarray(self.rare(terms) * (gains + LEAST_GAIN), dtype=np.float32)

    def runs_since(self, times: NDArray[np.float64]) -> Matrix:
        """Returns the number of runs that the replay read and that are newer than each of these times, (n,)."""
        return (self.runs - np.searchsorted(self.times, times, side="right")).astype(np.float32)


def fit_of(
    history: History,
    order: str = FIRST_ORDER,
    weights: NDArray[np.float32] = START,
    alike: Matrix | None = None,
) -> Fit:
    """Returns the numbers that serving needs, computed from a bank's runs."""
    has, distinct = incidence(history.terms)
    well = history.went_well.astype(np.float32)
    pairs = np.tril(agreement(history.moves) if alike is None else alike, -1) * well[:, None] * well
    having, having_well = has.sum(axis=0), well @ has
    mean = pairs.sum() / max(well.sum() * (well.sum() - 1) / 2, 1)
    gains = gain(((pairs @ has) * has).sum(axis=0), having_well, float(mean))
    known = having > 1
    return Fit(
        order=order,
        weights=weights,
        runs=len(has),
        terms=distinct[known],
        having=having[known],
        gains=gains[known],
        moves=rarity(history.moves),
        proven=float(well @ (history.trust >= 1)) / max(float(well.sum()), 1.0),
        times=history.times,
    )
