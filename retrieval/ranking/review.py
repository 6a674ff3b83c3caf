"""Computes a logged decision again: the score of each candidate, and why it is on the slate or not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from policy import features
from policy.decide import Policy, score
from policy.inputs import Inputs
from policy.reasons import Reason, reasons
from policy.slate import choose, ranking, traits_of


class LoggedColumns(Protocol):
    """The columns of a logged decision from which it is computed again.

    Attributes:
        policy_version: name of the policy that the decision followed.
        feature_version: version of the features that were logged.
        k: largest number of cases on the slate.
        min_similarity: least similarity of a case that the request allows; None: any.
        candidate_ids: ids of the candidates, in the order of retrieval.
        candidate_groups: number of each candidate's group; candidates with the same plan and outcome share a group.
        candidate_sources: number of each candidate's source, the writer that retained the run.
        features: the candidates' features, as packed by ``policy.features.packed``.
        scores: logged scores of the candidates.
        case_ids: ids of the cases on the slate, in the order of places; None for an empty slate.
    """

    policy_version: str
    feature_version: int
    k: int
    min_similarity: float | None
    candidate_ids: Sequence[UUID]
    candidate_groups: Sequence[int]
    candidate_sources: Sequence[int]
    features: bytes
    scores: Sequence[float]
    case_ids: Sequence[UUID] | None


@dataclass(frozen=True, slots=True)
class ScoreTerms:
    """Terms of a candidate's score, which is ``order + learned``, and numbers beside it.

    Attributes:
        order: log odds that follow from the candidate's place by the order that replay chose.
        learned: log odds that the network adds, times the policy's blend; 0 without a network.
        spread: standard deviation of the network's log odds over its ensemble, before the blend.
        expected: expected reward of a slate of this case alone, 0 to 1; None without a network.
    """

    order: float
    learned: float
    spread: float
    expected: float | None


@dataclass(frozen=True, slots=True)
class Reviewed:
    """A candidate of a logged decision, computed again.

    Attributes:
        place: place on the slate, from 1; None if the candidate is not on the slate.
        group: number of the group; candidates with the same plan and outcome share a group.
        source: number of the writer that retained the run.
        seen: the features by name; a missing feature is None. Empty if the features are of another version.
        terms: terms of the score; None if the policy was deleted or the features are of another version.
        reason: why the candidate is on the slate or not; None if the features are of another version.
    """

    case_id: UUID
    place: int | None
    score: float
    group: int
    source: int
    seen: Mapping[str, float | None]
    terms: ScoreTerms | None
    reason: Reason | None


@dataclass(frozen=True, slots=True)
class DecisionReview:
    """A logged decision, computed again.

    Attributes:
        off_by: largest difference between a logged score and the recomputed one; None if scores cannot be recomputed.
        would_serve: cases that each policy would serve without random draws, by the policy's name; empty if the
            features are of another version.
    """

    candidates: list[Reviewed]
    off_by: float | None
    would_serve: Mapping[str, list[UUID]]


def review(row: LoggedColumns, policies: Mapping[str, Policy | None]) -> DecisionReview:
    """Computes a logged decision again, for its page and for the API: each candidate's terms, each policy's slate.

    ``policies`` has the one that served unless it was deleted; None is the untrained default.
    """
    if row.feature_version != features.VERSION:
        return DecisionReview(
            [_reviewed(row, index, None, None, None) for index in range(len(row.candidate_ids))], None, {}
        )
    seen = features.unpacked(row.features)
    groups, sources = (np.array(each, np.int16) for each in (row.candidate_groups, row.candidate_sources))
    traits = traits_of(seen, groups, sources, row.min_similarity)
    inputs = Inputs(seen)
    scored = {version: score(policy, inputs) for version, policy in policies.items()}
    slates = {version: choose(traits, ranking(traits, each.total), row.k) for version, each in scored.items()}
    own = scored.get(row.policy_version)
    logged = np.array(row.scores, dtype=np.float32)
    by_rule = slates.get(row.policy_version, choose(traits, ranking(traits, logged), row.k))
    place = {case_id: index for index, case_id in enumerate(row.candidate_ids)}
    served = tuple(place[case_id] for case_id in row.case_ids or ())
    why = reasons(traits, logged, served, by_rule)
    terms: list[ScoreTerms] | None = None
    if own is not None:
        learned = own.total - own.prior
        terms = [
            ScoreTerms(
                order=float(own.prior[index]),
                learned=float(learned[index]),
                spread=float(own.spread[index]),
                expected=None if own.q is None else float(own.q[index]),
            )
            for index in range(len(seen))
        ]
    return DecisionReview(
        [
            _reviewed(row, index, seen[index], None if terms is None else terms[index], why[index])
            for index in range(len(row.candidate_ids))
        ],
        None if own is None else float(np.abs(own.total - logged).max(initial=0)),
        {version: [row.candidate_ids[index] for index in slate] for version, slate in slates.items()},
    )


def _reviewed(
    row: LoggedColumns, index: int, seen: NDArray[np.float32] | None, terms: ScoreTerms | None, reason: Reason | None
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
