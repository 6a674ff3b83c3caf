"""Explains each candidate of a decision: the rule or draw that put it on the slate, or kept it off."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from policy.slate import Slate, Traits, may_join, ranking

Reason = Literal[
    "chosen",
    "drawn",
    "not_near_enough",
    "same_as_another",
    "another_failure",
    "unproven",
    "displaced",
    "source",
    "lower",
    "left_empty",
]
"""Reason why a candidate is on the slate, or is not.

* ``chosen``: the order and the rules put it on the slate.
* ``drawn``: a random draw put it on the slate, to try it out.
* ``not_near_enough``: it is less similar to the query than the request requires, or its similarity is unknown.
* ``same_as_another``: it says the same as a case on the slate.
* ``another_failure``: a failed run is on the slate as a warning, and a slate has room for one.
* ``unproven``: it ranks above a served case, but waits in quarantine: proven or much nearer cases go first.
* ``displaced``: it ranks above a served case, but an unproven case much nearer to the query took its place.
* ``source``: it ranks above a served case, but its source has as many places as one source may.
* ``lower``: it ranks below every served case, or a random draw gave its place to another case.
* ``left_empty``: the slate was left empty, by a random draw.
"""


def reasons(traits: Traits, scores: NDArray[np.float32], served: Slate, by_rule: Slate) -> list[Reason]:
    """Returns the reason why each of n candidates is on the served slate, or is not, (n,).

    Args:
        traits: traits of the n candidates.
        scores: (n,), score of each candidate, in log odds, by the policy that served.
        served: the slate that was served.
        by_rule: the slate that this policy gives without a random draw.
    """
    return [_reason(traits, scores, served, by_rule, index) for index in range(len(scores))]


def _reason(traits: Traits, scores: NDArray[np.float32], served: Slate, by_rule: Slate, index: int) -> Reason:
    if index in served:
        return "chosen" if index in by_rule else "drawn"
    if not traits.allowed[index]:
        return "not_near_enough"
    if not served:
        return "left_empty"
    if index in by_rule:  # a lot gave its place away
        return "lower"
    if not may_join(traits, served, index):
        return "same_as_another" if np.isin(traits.group[index], traits.group[list(served)]) else "another_failure"
    return _held_back(traits, scores, by_rule, index)


def _held_back(traits: Traits, scores: NDArray[np.float32], by_rule: Slate, index: int) -> Reason:
    """Returns the rule that kept off the slate a candidate which might stand beside the served ones."""
    ordered = ranking(traits, scores)
    below = set(by_rule).intersection(ordered[ordered.index(index) :])
    if not below:
        return "lower"
    proven = traits.proven[index]
    if any(traits.proven[other] != proven for other in below):
        return "displaced" if proven else "unproven"
    if traits.source[index] in traits.source[list(by_rule)]:
        return "source"
    return "displaced" if proven else "unproven"
