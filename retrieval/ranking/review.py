"""Computes a logged decision again: the score of each candidate, and why it is on the slate or not."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from uuid import UUID

import numpy as np

from policy import features
from policy.decide import Policy, score
from policy.inputs import Inputs
from policy.reasons import Reason, reasons
from policy.slate import choose, ranking, traits_of
from retrieval.database.rows import AnyRow


@dataclass(frozen=True, slots=True)
class Reviewed:
    """The computed part of a candidate of a logged decision.

    Attributes:
        features: the features by name; a missing one is None. Empty if they are of another version.
        terms: terms of the score by name, ``order`` and ``learned``, and beside them ``spread`` and ``expected``, the
            expected reward of a slate of this case alone, 0 to 1, or None without a network. All are None if the policy
            was deleted or the features are of another version.
        reason: why the candidate is on the slate or not; None if the features are of another version.
    """

    features: Mapping[str, float | None]
    terms: Mapping[str, float | None] | None
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


def review(row: AnyRow, policies: Mapping[str, Policy | None]) -> DecisionReview:
    """Computes a logged decision again, for its page and for the API: each candidate's terms, each policy's slate.

    ``policies`` has the one that served unless it was deleted; None is the untrained default.
    """
    if row.feature_version != features.VERSION:
        return DecisionReview([Reviewed({}, None, None) for _ in row.candidate_ids], None, {})
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
    candidates: list[Reviewed] = []
    for index, numbers in enumerate(seen.tolist()):
        named = {name: value if isfinite(value) else None for name, value in zip(features.NAMES, numbers, strict=True)}
        terms: dict[str, float | None] | None = None
        if own is not None:
            terms = {
                "order": float(own.prior[index]),
                "learned": float(own.total[index] - own.prior[index]),
                "spread": float(own.spread[index]),
                "expected": None if own.q is None else float(own.q[index]),
            }
        candidates.append(Reviewed(named, terms, why[index]))
    return DecisionReview(
        candidates,
        None if own is None else float(np.abs(own.total - logged).max(initial=0)),
        {version: [row.candidate_ids[index] for index in slate] for version, slate in slates.items()},
    )
