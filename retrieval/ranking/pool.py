"""The candidates as a policy sees them: rows turned into features, and into groups and sources for a slate's rules."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from policy import evidence, experience, features
from policy.features import Features
from retrieval.ranking.near_duplicates import groups
from retrieval.ranking.tool_counts import ToolCounts, ToolVectors
from retrieval.sealed import as_stored
from retrieval.search.candidates import Candidate
from retrieval.search.reuse_history import Reuse

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
    """The query's text and vector; without a vector no candidate is near it."""

    text: str
    vector: NDArray[np.float32] | None


def pool_of(
    rows: Sequence[Candidate], uses: Sequence[Reuse], counts: ToolCounts, query: Query, names: ToolVectors
) -> Pool:
    """Returns the candidates in the rows with their features.

    ``uses`` are the rows of ``search.reuse_history``, ``counts`` the tool counts of rows and uses, one after the other,
    and ``names`` holds the vectors of tools' names that are known.
    """
    effects, used = counts.counts[: len(rows)], counts.counts[len(rows) :]
    own = features.own([as_stored(row) for row in rows])
    cases = evidence.Cases(
        similarity=_own(own, "similarity"),
        keyword_rank=_own(own, "keyword_rank"),
        reward=_own(own, "reward"),
        effects=effects,
        steps=_own(own, "step_count"),
        errors=_own(own, "error_count"),
    )
    place = {row.id: index for index, row in enumerate(rows)}
    history = experience.ReuseHistory(
        similarity=np.array([use.similarity for use in uses], dtype=np.float64),
        reward=np.array([use.reward for use in uses], dtype=np.float64),
        credit=np.array([use.credit for use in uses], dtype=np.float64),
        effects=used,
        candidate=np.array([place.get(use.case_id, -1) for use in uses], dtype=np.int64),
    )
    matrix = features.matrix(
        own,
        evidence.features(cases, cases, _tools(counts, query, names)),
        experience.features(cases, history),
    )
    numbers = {name: number for number, name in enumerate(dict.fromkeys(row.source for row in rows))}
    source = np.array([numbers[row.source] for row in rows], dtype=np.int16)
    return Pool([row.id for row in rows], matrix, groups(rows), source)


def _tools(counts: ToolCounts, query: Query, names: ToolVectors) -> evidence.Tools:
    count = counts.counts.shape[1]
    if not counts.are_tools or query.vector is None:
        return evidence.Tools(np.zeros((count, 0)), np.zeros(0), np.zeros(count))
    query_stems = _stems(query.text)
    stems = [_stems(name) for name in counts.items]
    overlap = np.array([len(words & query_stems) / max(len(words), 1) for words in stems])
    vectors = np.stack([names.of(name, len(query.vector)) for name in counts.items])
    return evidence.Tools(vectors.astype(np.float64), query.vector.astype(np.float64), overlap)


def _stems(text: str) -> frozenset[str]:
    return frozenset(word[:STEM_CHARS] for word in _WORD.findall(text.casefold()))


def _own(own: NDArray[np.float32], name: str) -> evidence.Vector:
    return own[:, features.COLUMN[name]].astype(np.float64)
