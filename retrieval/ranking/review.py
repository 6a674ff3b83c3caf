"""A logged decision, computed again from its log: what each candidate scored, and why it stands or does not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from policy import features
from policy.decide import Policy, preferred, score
from policy.reasons import Reason, reasons
from policy.slate import choose, field_of, order


class Logged(Protocol):
    """A row of ``decisions`` with its slots, as far as it is computed again."""

    @property
    def policy_version(self) -> str:
        """Policy that it followed."""

    @property
    def feature_version(self) -> int:
        """Version of the logged features."""

    @property
    def k(self) -> int:
        """Number of places."""

    @property
    def min_similarity(self) -> float | None:
        """Least similarity of the request."""

    @property
    def candidate_ids(self) -> Sequence[UUID]:
        """Candidates in the order of retrieval."""

    @property
    def candidate_groups(self) -> Sequence[int]:
        """Number of each candidate's group; candidates with one plan have one number."""

    @property
    def candidate_sources(self) -> Sequence[int]:
        """Number of each candidate's source: who retained the run."""

    @property
    def features(self) -> bytes:
        """Features as ``policy.features`` packs them."""

    @property
    def scores(self) -> Sequence[float]:
        """Scores of the candidates."""

    @property
    def case_ids(self) -> Sequence[UUID] | None:
        """Cases of the slate, by place; None for an empty slate."""


@dataclass(frozen=True, slots=True)
class Terms:
    """Terms of a score, which is their sum; log odds up to a constant of the query, except ``expected``.

    Attributes:
        order: place by the order that replay chose.
        learned: term of the network, after weighting against the order; 0 without a network.
        spread: standard deviation of ``learned`` over the ensemble, before the blend.
        expected: reward expected of a slate of this case alone, 0 to 1; None without a network.
    """

    order: float
    learned: float
    spread: float
    expected: float | None


@dataclass(frozen=True, slots=True)
class Reviewed:
    """A candidate: its place on the slate, 1-based, or None, and the reason.

    Attributes:
        score: the logged score.
        seen: its features by name; a missing one is None. Empty if they are of another version.
        terms: terms of the score; None if the policy or its features are gone.
        reason: rule that decided; None if the features are of another version.
    """

    case_id: UUID
    place: int | None
    score: float
    group: int
    source: int
    seen: Mapping[str, float | None]
    terms: Terms | None
    reason: Reason | None


@dataclass(frozen=True, slots=True)
class Review:
    """A decision, computed again.

    Attributes:
        candidates: in the order of retrieval.
        off_by: largest difference between a logged score and the same one computed again; None: it cannot be.
        would_serve: by policy, the cases that it would serve by rule; empty where the features are of another version.
    """

    candidates: list[Reviewed]
    off_by: float | None
    would_serve: Mapping[str, list[UUID]]


def review(row: Logged, policies: Mapping[str, Policy | None]) -> Review:
    """Computes a logged decision again, for its page and for the API: the terms of each candidate, and the slates.

    Args:
        row: row of the decision.
        policies: policies by version, with the one that served unless it was deleted; None stands for the default.
    """
    if row.feature_version != features.VERSION:
        return Review([_reviewed(row, index, None, None, None) for index in range(len(row.candidate_ids))], None, {})
    seen = features.unpacked(row.features)
    groups, sources = (np.array(each, np.int16) for each in (row.candidate_groups, row.candidate_sources))
    field = field_of(seen, groups, sources, row.min_similarity)
    scored = {version: score(policy, seen) for version, policy in policies.items()}
    slates = {
        version: preferred(each, choose(field, order(field, each.total), row.k)) for version, each in scored.items()
    }
    own = scored.get(row.policy_version)
    logged = np.array(row.scores, dtype=np.float32)
    by_rule = slates.get(row.policy_version, choose(field, order(field, logged), row.k))
    place = {case_id: index for index, case_id in enumerate(row.candidate_ids)}
    served = tuple(place[case_id] for case_id in row.case_ids or ())
    why = reasons(field, logged, served, by_rule)
    terms: list[Terms] | None = None
    if own is not None:
        learned = own.total - own.prior
        terms = [
            Terms(
                order=float(own.prior[index]),
                learned=float(learned[index]),
                spread=float(own.spread[index]),
                expected=None if own.q is None else float(own.q[index]),
            )
            for index in range(len(seen))
        ]
    return Review(
        [
            _reviewed(row, index, seen[index], None if terms is None else terms[index], why[index])
            for index in range(len(row.candidate_ids))
        ],
        None if own is None else float(np.abs(own.total - logged).max(initial=0)),
        {version: [row.candidate_ids[index] for index in slate] for version, slate in slates.items()},
    )


def _reviewed(
    row: Logged, index: int, seen: NDArray[np.float32] | None, terms: Terms | None, reason: Reason | None
) -> Reviewed:
    case_id = row.candidate_ids[index]
    slate = list(row.case_ids or ())
    return Reviewed(
        case_id=case_id,
        place=slate.index(case_id) + 1 if case_id in slate else None,
        score=row.scores[index],
        group=row.candidate_groups[index],
        source=row.candidate_sources[index],
        seen={}
        if seen is None
        else {
            name: float(value) if np.isfinite(value) else None for name, value in zip(features.NAMES, seen, strict=True)
        },
        terms=terms,
        reason=reason,
    )
