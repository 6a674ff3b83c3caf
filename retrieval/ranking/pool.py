"""Turns rows of candidates into what a policy sees: features, and groups and sources for the rules of a slate."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from policy.agreement import SAME, Matrix
from policy.channels import Terms
from policy.features import Candidates, Features, features, record
from policy.fit import FIRST_ORDER, Fit
from retrieval.database.rows import integers
from retrieval.search.candidates import Candidate


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """The n candidates of one query as a policy sees them, in the order of retrieval.

    Attributes:
        features: (n, inputs), the features of ``policy.features``.
        group: (n,), number of each candidate's group; of a group, with the same plan and outcome, one candidate is
            shown.
        source: (n,), number of the writer of each case.
        agreement: (n, n), agreement of the candidates' plans.
        fit: numbers of the bank by which the candidates were ranked.
    """

    ids: list[UUID]
    features: Features
    group: NDArray[np.int16]
    source: NDArray[np.int16]
    query: Terms
    terms: Sequence[Terms]
    agreement: Matrix
    fit: Fit

    def places(self, ordered: Sequence[int]) -> dict[UUID, int]:
        """Returns the place of each case's group, from 0, by the case's id; ``ordered`` has the candidates' indices.

        Groups none of whose candidates is among the ordered ones have no place.
        """
        first: dict[int, int] = {}
        for place, index in enumerate(ordered):
            first.setdefault(int(self.group[index]), place)
        groups = zip(self.ids, self.group.tolist(), strict=True)
        return {case_id: first[group] for case_id, group in groups if group in first}


def pool_of(rows: Sequence[Candidate], query: Sequence[int], fit: Fit | None, first_order: str = FIRST_ORDER) -> Pool:
    """Returns the candidates of a query as a policy sees them.

    The query has no terms if its words cannot be compared, and ``fit`` is None for a profile that was never replayed.
    """
    terms = np.array(query, dtype=np.int32)
    candidates = Candidates(
        times=np.array([row.newest_run.timestamp() for row in rows], dtype=np.float64),
        terms=[integers(row.terms) for row in rows],
        moves=[integers(row.moves) for row in rows],
        similarity=_numbers([row.similarity for row in rows]),
        reward=_numbers([row.reward for row in rows]),
        record=record(
            np.array([row.reuse_count for row in rows], dtype=np.float64),
            np.array([row.reuse_reward for row in rows], dtype=np.float64),
        ),
        steps=_numbers([row.step_count for row in rows]),
        proven=np.array([row.proven for row in rows], dtype=np.bool_),
        failed=np.array([row.failed for row in rows], dtype=np.bool_),
    )
    ranked = features(terms, candidates, fit, first_order)
    numbers = {name: number for number, name in enumerate(dict.fromkeys(row.source for row in rows))}
    return Pool(
        ids=[row.id for row in rows],
        features=ranked.features,
        group=groups(ranked.agreement, candidates.failed),
        source=np.array([numbers[row.source] for row in rows], dtype=np.int16),
        query=terms,
        terms=candidates.terms,
        agreement=ranked.agreement,
        fit=ranked.fit,
    )


def groups(agreement: Matrix, failed: NDArray[np.bool_]) -> NDArray[np.int16]:
    """Returns the number of each candidate's group, (n,); candidates with the same plan and outcome share a group.

    Groups are numbered in the order of retrieval, which is the same for every policy.
    """
    alike = (agreement >= SAME) & (failed[:, None] == failed[None, :])
    group = np.full(len(failed), -1, dtype=np.int16)
    for index in range(len(failed)):
        if group[index] < 0:
            group[alike[index] & (group < 0)] = index
    return group


def _numbers(values: Sequence[float | None]) -> Matrix:
    return np.array(values, dtype=np.float32)  # None becomes NaN
