"""Agreement of plans: how alike the successful calls of two runs are. It is the label from which orders are learned.

A plan is a multiset of *moves*: the tool of a successful call, and each part of its arguments that names a choice and
not the run's data (``writer.analysis.moves``). The agreement of two plans is their F1 score over moves (van Rijsbergen
1979), in which a rare move counts more than one that every plan has.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

Moves = NDArray[np.int32]
"""The moves of one plan as numbers (hashes), with repeats, in any order."""
Matrix = NDArray[np.float32]

SAME = 0.99
"""Least agreement at which two plans count as the same plan."""
MOST_REPEATS = 8
"""Largest count of one move in one plan; a loop of a hundred calls is not a hundred moves."""
BLOCK = 4_096
"""Largest number of moves, or of terms, that a table has at a time: 400 long texts have a hundred times as many."""
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
    return _rarity(Counts.of(plans, MOST_REPEATS))


def _rarity(plans: "Counts") -> Rarity:
    unknown = LEAST_RARITY + float(np.log(max(plans.lists, 1)))
    return Rarity(plans.numbers, (unknown - np.log(plans.having())).astype(np.float32), unknown)


def agreement(plans: Sequence[Moves], weights: Rarity | None = None) -> Matrix:
    """Returns the agreement of each pair of plans, (n, n), 0 to 1; that of a plan without moves with any other is 0."""
    counts = Counts.of(plans, MOST_REPEATS)
    weights = weights or _rarity(counts)
    shared = np.zeros((len(plans), len(plans)), dtype=np.float32)
    for table, moves in counts.blocks():
        weight = weights.of(moves)
        for level in range(1, int(table.max(initial=0)) + 1):  # min(a, b) counts the levels that both reach
            reached = (table >= level).astype(np.float32)
            shared += (reached * weight) @ reached.T
    mass = counts.sums(weights.of(counts.numbers))
    total = mass[:, None] + mass[None, :]
    same: Matrix = np.minimum(2 * shared / np.maximum(total, np.float32(1e-9)), 1).astype(np.float32)
    np.fill_diagonal(same, 1)
    return same


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """Counts of k numbers in n lists: a sparse table, so that a long list does not widen the rows of the others.

    Attributes:
        lists: the number n.
        numbers: (k,), distinct numbers, sorted.
        row, column: list and number of each entry, as indices; sorted by row, then column.
        count: occurrences of the number in the list.
    """

    lists: int
    numbers: Moves
    row: NDArray[np.intp]
    column: NDArray[np.intp]
    count: Matrix

    @classmethod
    def of(cls, several: Sequence[Moves], most: int) -> Self:
        """Returns the counts of the lists' numbers, each at most ``most``."""
        owner = np.repeat(np.arange(len(several)), [len(each) for each in several])
        numbers, place = np.unique(np.concatenate([*several, np.zeros(0, np.int32)]), return_inverse=True)
        entry, count = np.unique(owner * len(numbers) + place, return_counts=True)
        row, column = np.divmod(entry, max(len(numbers), 1))
        return cls(len(several), numbers.astype(np.int32), row, column, np.minimum(count, most).astype(np.float32))

    def having(self) -> NDArray[np.intp]:
        """Returns how many lists have each number, (k,)."""
        return np.bincount(self.column, minlength=len(self.numbers))

    def sums(self, values: Matrix) -> Matrix:
        """Returns the sum of its numbers' values for each list, (n,), each as often as the list has the number."""
        return np.bincount(self.row, self.count * values[self.column], self.lists).astype(np.float32)

    def table(self) -> Matrix:
        """Returns the counts as a table, (n, k)."""
        table = np.zeros((self.lists, len(self.numbers)), dtype=np.float32)
        table[self.row, self.column] = self.count
        return table

    def blocks(self) -> Iterator[tuple[Matrix, Moves]]:
        """Yields the numbers that at least two lists have, BLOCK numbers at a time.

        Each block is a table of counts, (n, at most BLOCK), and its numbers, sorted.
        """
        wanted = np.flatnonzero(self.having() > 1)
        by_column = np.argsort(self.column, kind="stable")
        row, column, count = self.row[by_column], self.column[by_column], self.count[by_column]
        for start in range(0, len(wanted), BLOCK):
            block = wanted[start : start + BLOCK]
            inside = slice(*np.searchsorted(column, [block[0], block[-1] + 1]))
            place = np.minimum(np.searchsorted(block, column[inside]), len(block) - 1)
            kept = block[place] == column[inside]
            table = np.zeros((self.lists, len(block)), dtype=np.float32)
            table[row[inside][kept], place[kept]] = count[inside][kept]
            yield table, self.numbers[block]
