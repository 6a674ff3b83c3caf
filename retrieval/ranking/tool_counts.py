"""Counts of the tools or steps of each case, and vectors of the tools' names."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from policy.evidence import Matrix
from retrieval.text import folded

NOT_KNOWN: NDArray[np.float32] = np.zeros(0, np.float32)
"""Vector of a name that the embedder refused."""
AT_ONCE = 32
"""Names of tools that are embedded beside one query, at most."""


class RunRecord(Protocol):
    """Columns of a case that say what was done in it."""

    @property
    def effects(self) -> Sequence[str]:
        """The tools that changed something, once for each success; of a run without calls the steps of its plan."""

    @property
    def plan(self) -> Sequence[str]:
        """The steps, in words or in tokens that are equal where the words are."""


@dataclass(frozen=True, slots=True, eq=False)
class ToolCounts:
    """Counts of items in each case: tools, or the steps of plans where all cases used one tool.

    Attributes:
        items: the columns, in order of first use.
        counts: (cases, max(len(items), 1)).
        are_tools: true if the items are tools.
    """

    items: list[str]
    counts: Matrix
    are_tools: bool


def tool_counts(rows: Sequence[RunRecord], beside: Collection[str] = ()) -> ToolCounts:
    """Returns the counts of the rows' cases, from ``effects`` or ``plan``.

    Beside: tools that others used. Only where all of them used one are steps counted.
    """
    items = [row.effects for row in rows]
    are_tools = len({name for names in (*items, beside) for name in names}) > 1
    if not are_tools:  # an agent with one tool says what it did by its plan
        items = [[folded(step) for step in row.plan] for row in rows]
    column = {name: index for index, name in enumerate(dict.fromkeys(name for names in items for name in names))}
    counts = np.zeros((len(rows), max(len(column), 1)))
    for index, names in enumerate(items):
        for name in names:
            counts[index, column[name]] += 1
    return ToolCounts(list(column), counts, are_tools)


class ToolVectors:
    """Unit vectors of tools' names, those needed last; all users share the vector of a name."""

    def __init__(self, capacity: int = 10_000) -> None:
        self._capacity = capacity
        self._known: dict[str, NDArray[np.float32]] = {}
        self._wanted: dict[str, None] = {}

    def want(self, counts: ToolCounts) -> None:
        """Queues the names of tools whose vectors are unknown; steps need none."""
        if counts.are_tools:
            self._wanted |= dict.fromkeys(name for name in counts.items if name not in self._known and words_of(name))

    def wanted(self) -> list[str]:
        """Returns queued names, at most AT_ONCE."""
        return list(self._wanted)[:AT_ONCE]

    def learn(self, vectors: dict[str, NDArray[np.float32]]) -> None:
        """Remembers the vectors, and forgets the oldest of too many."""
        self._known |= vectors
        for name in vectors:
            self._wanted.pop(name, None)
        for name in list(self._known)[: max(len(self._known) - self._capacity, 0)]:
            del self._known[name]

    def of(self, name: str, dimension: int) -> NDArray[np.float32]:
        """Returns the vector of the name, zeros where it is not known."""
        known = self._known.get(name)
        return known if known is not None and len(known) == dimension else np.zeros(dimension, np.float32)


def words_of(tool: str) -> str:
    """Returns the name of a tool as words, for an embedder; empty if there are none."""
    return " ".join(re.findall(r"[^\W_]+", tool))
