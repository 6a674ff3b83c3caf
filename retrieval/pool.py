"""The candidates as a policy sees them: from rows to features, and to what the rules of a slate look at."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from policy import evidence, experience, features
from policy.features import Features
from retrieval.diversity import groups

STEM_CHARS = 5
"""Enough to match cancelled with cancel, and few enough to match exchange with exchanging."""
_WORD = re.compile(r"[a-z0-9]+")


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """The candidates of one query, n of them in the order of retrieval."""

    ids: list[UUID]
    features: Features
    group: NDArray[np.int16]
    source: NDArray[np.int16]


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """What of the query its candidates are compared with; without a vector nothing is near anything."""

    text: str
    vector: NDArray[np.float32] | None


def pool(rows: Sequence[Any], uses: Sequence[Any], query: Query, names: "ToolVectors") -> Pool:
    """Returns the candidates in the rows with their features.

    ``uses`` are the rows of ``retrieval.past``; ``names`` holds vectors of tools' names, where they are known.
    """
    items = _items([*rows, *uses])
    effects, used = _counts(rows, items), _counts(uses, items)
    own = features.own(rows)
    cases = evidence.Cases(
        similarity=_own(own, "similarity"),
        keyword_rank=_own(own, "keyword_rank"),
        reward=_own(own, "reward"),
        effects=effects,
        steps=_own(own, "step_count"),
        errors=_own(own, "error_count"),
    )
    place = {row.id: index for index, row in enumerate(rows)}
    past = experience.Past(
        similarity=np.array([use.similarity for use in uses], dtype=np.float64),
        reward=np.array([use.reward for use in uses], dtype=np.float64),
        credit=np.array([use.credit for use in uses], dtype=np.float64),
        effects=used,
        candidate=np.array([place.get(use.case_id, -1) for use in uses], dtype=np.int64),
    )
    seen = features.matrix(
        own,
        evidence.features(cases, cases, _tools(items, query, names)),
        experience.features(cases, past),
    )
    return Pool([row.id for row in rows], seen, groups(rows), _numbered([row.source for row in rows]))


def _numbered(names: Sequence[str]) -> NDArray[np.int16]:
    """Returns a number for each name, (n,), the same for the same name."""
    first = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return np.array([first[name] for name in names], dtype=np.int16)


class ToolVectors:
    """Unit vectors of tools' names, as many as were last needed; the same for whoever uses a tool of that name."""

    def __init__(self, capacity: int = 10_000) -> None:
        self._capacity = capacity
        self._known: dict[str, NDArray[np.float32]] = {}

    def unknown(self, rows: Sequence[Any]) -> list[str]:
        """Returns the tools in the rows' effects whose names have no vector yet; none where plans stand for tools."""
        return [name for name in _items(rows).names if name not in self._known]

    def learn(self, vectors: dict[str, NDArray[np.float32]]) -> None:
        """Remembers the vectors, and forgets the oldest of too many."""
        self._known |= vectors
        for name in list(self._known)[: max(len(self._known) - self._capacity, 0)]:
            del self._known[name]

    def of(self, name: str, dimension: int) -> NDArray[np.float32]:
        """Returns the vector of the name, zeros where it is not known."""
        known = self._known.get(name)
        return known if known is not None and len(known) == dimension else np.zeros(dimension, np.float32)


@dataclass(frozen=True, slots=True)
class _Items:
    """What plans are made of here: tools, or the steps of the plans where all cases used one tool."""

    column: dict[str, int]
    are_tools: bool

    @property
    def names(self) -> list[str]:
        """The tools; empty where the items are steps."""
        return list(self.column) if self.are_tools else []


def _items(rows: Sequence[Any]) -> _Items:
    tools = dict.fromkeys(name for row in rows for name in row.effects)
    if len(tools) > 1:
        return _Items({name: index for index, name in enumerate(tools)}, are_tools=True)
    # an agent with one tool says what it did by its plan
    steps = dict.fromkeys(_step(step) for row in rows for step in row.plan)
    return _Items({step: index for index, step in enumerate(steps)}, are_tools=False)


def _step(text: str) -> str:
    return " ".join(text.casefold().split())


def _counts(rows: Sequence[Any], items: _Items) -> evidence.Matrix:
    counts = np.zeros((len(rows), max(len(items.column), 1)))
    for index, row in enumerate(rows):
        for name in row.effects if items.are_tools else map(_step, row.plan):
            counts[index, items.column[name]] += 1
    return counts


def _tools(items: _Items, query: Query, names: ToolVectors) -> evidence.Tools:
    count = max(len(items.column), 1)
    if not items.are_tools or query.vector is None:
        return evidence.Tools(np.zeros((count, 0)), np.zeros(0), np.zeros(count))
    asked = _stems(query.text)
    stems = [_stems(name) for name in items.column]
    overlap = np.array([len(words & asked) / max(len(words), 1) for words in stems])
    vectors = np.stack([names.of(name, len(query.vector)) for name in items.column])
    return evidence.Tools(vectors.astype(np.float64), query.vector.astype(np.float64), overlap)


def _stems(text: str) -> frozenset[str]:
    return frozenset(word[:STEM_CHARS] for word in _WORD.findall(text.casefold()))


def _own(own: NDArray[np.float32], name: str) -> evidence.Vector:
    return own[:, features.COLUMN[name]].astype(np.float64)
