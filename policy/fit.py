"""The numbers that a replay stores for serving: the order that serves, and weights of terms, channels and moves."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policy.agreement import Counts, Matrix, Rarity, agreement, looked_up, rarity
from policy.channels import LEAST_GAIN, TINY, Terms, gain, idf, weight_of_pairs
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
        mostly_proven: true if unproven runs wait in quarantine, see ``History.mostly_proven``.
        times: (runs,), seconds since 1970 at which each run, or its newest repeat, was retained, sorted.
    """

    order: str
    weights: NDArray[np.float32]
    runs: int
    terms: Terms
    having: Matrix
    gains: Matrix
    moves: Rarity
    mostly_proven: bool
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
    voices = history.voices
    pairs = np.tril(agreement(history.moves) if alike is None else alike, -1) * voices[:, None] * voices
    mean = float(pairs.sum() / max(weight_of_pairs(voices.sum(), voices @ voices), TINY))
    terms, having, gains = [np.zeros(0, np.int32)], [np.zeros(0, np.float32)], [np.zeros(0, np.float32)]
    for has, block in Counts.of(history.terms, 1).blocks():
        heard = voices @ has
        terms.append(block)
        having.append(has.sum(axis=0))
        gains.append(gain(((pairs @ has) * has).sum(axis=0), weight_of_pairs(heard, voices**2 @ has), heard, mean))
    return Fit(
        order=order,
        weights=weights,
        runs=len(history.terms),
        terms=np.concatenate(terms),
        having=np.concatenate(having),
        gains=np.concatenate(gains),
        moves=rarity(history.moves),
        mostly_proven=history.mostly_proven,
        times=np.sort(history.newest),
    )
