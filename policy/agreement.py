"""Agreement of plans: how alike the successful calls of two runs are. It is the label from which orders are learned.

A plan is a multiset of *moves*: the tool of a successful call, and each part of its arguments that names a choice and
not the run's data (``writer.analysis.moves``). The agreement of two plans is their F1 score over moves (van Rijsbergen
1979), in which a rare move counts more than one that every plan has.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Moves = NDArray[np.int32]
"""The moves of one plan as numbers (hashes), with repeats, in any order."""
Matrix = NDArray[np.float32]

SAME = 0.99
"""Least agreement at which two plans count as the same plan."""
MOST_REPEATS = 8
"""Largest count of one move in one plan; a loop of a hundred calls is not a hundred moves."""
LEAST_RARITY = 0.1
"""Weight of a move that all plans have; a move that one plan in n has weighs log(n) more."""


@dataclass(frozen=True, slots=True, eq=False)
class Rarity:
    """Weights of the moves of a bank's plans: the fewer plans have a move, the more it weighs.

    Attributes:
        moves: (k,), distinct moves, sorted.
        weights: (k,), weight of each move, above 0.
        unknown: weight of a move that no plan of the bank has.
    """

    moves: Moves
    weights: Matrix
    unknown: float

    def of(self, moves: Moves) -> Matrix:
        """Returns the weight of each of these moves; a move that no plan of the bank has gets ``unknown``."""
        return looked_up(self.moves, self.weights, self.unknown, moves)


def looked_up(keys: Moves, values: Matrix, default: float, wanted: Moves) -> Matrix:
    """Returns the value of each wanted key, or the default if it is not in ``keys``, which are sorted and distinct."""
    if not len(keys):
        return np.full(len(wanted), default, dtype=np.float32)
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[place] == wanted, values[place], np.float32(default)).astype(np.float32)


def rarity(plans: Sequence[Moves]) -> Rarity:
    """Returns the weights of these plans' moves: LEAST_RARITY + log(plans / plans that have the move)."""
    table, distinct = counts(plans, MOST_REPEATS)
    unknown = LEAST_RARITY + float(np.log(max(len(plans), 1)))
    return Rarity(distinct, (unknown - np.log(np.maximum((table > 0).sum(axis=0), 1))).astype(np.float32), unknown)


def agreement(plans: Sequence[Moves], weights: Rarity | None = None) -> Matrix:
    """Returns the agreement of each pair of plans, (n, n), 0 to 1; that of a plan without moves with any other is 0."""
    table, distinct = counts(plans, MOST_REPEATS)
    weight = (weights or rarity(plans)).of(distinct)
    shared = np.zeros((len(plans), len(plans)), dtype=np.float32)
    for level in range(1, int(table.max(initial=0)) + 1):  # min(a, b) counts the levels that both reach
        reached = (table >= level).astype(np.float32)
        shared += (reached * weight) @ reached.T
    mass = table @ weight
    total = mass[:, None] + mass[None, :]
    same: Matrix = (2 * shared / np.maximum(total, np.float32(1e-9))).astype(np.float32)
    np.fill_diagonal(same, 1)
    return same


def counts(several: Sequence[Moves], most: int) -> tuple[Matrix, Moves]:
    """Returns a table of how often each list has each number, at most ``most``, and the k distinct numbers, sorted."""
    owner = np.repeat(np.arange(len(several)), [len(each) for each in several])
    distinct, column = np.unique(np.concatenate([*several, np.zeros(0, np.int32)]), return_inverse=True)
    shape = len(several), len(distinct)
    table = np.bincount(owner * len(distinct) + column, minlength=shape[0] * shape[1]).reshape(shape)
    return np.minimum(table, most).astype(np.float32), distinct.astype(np.int32)
