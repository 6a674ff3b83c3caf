"""Why each candidate of a decision stands where it stands, or does not stand: the rules of a slate, told one by one."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from policy.slate import Field, Slate, fits, order

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
"""Why a candidate stands, or why not.

* ``chosen``: it stands by the order and the rules.
* ``drawn``: it stands because a lot tried it out.
* ``not_near_enough``: it is less similar than the request asked for, or nobody knows how similar.
* ``same_as_another``: it says the same as a case that stands.
* ``another_failure``: one failed run stands as a warning, and a slate has room for one.
* ``unproven``: it stands above a case that was served, and waits in quarantine: proven or nearer ones go first.
* ``displaced``: it stands above a case that was served, and an unproven one much nearer to the query has a place.
* ``source``: it stands above a case that was served, whose place its own source may not have as well.
* ``lower``: it stands below every case that was served, or would have been but for a lot.
* ``left_empty``: nothing stands, by a lot or because no case was expected to help.
"""


def reasons(field: Field, scores: NDArray[np.float32], served: Slate, by_rule: Slate) -> list[Reason]:
    """Returns the reason of each candidate, (n,).

    Args:
        field: the candidates as the rules of a slate see them.
        scores: (n,), what the arm ordered them by.
        served: the slate that was served.
        by_rule: the arm's slate without a draw.
    """
    return [_reason(field, scores, served, by_rule, index) for index in range(len(scores))]


def _reason(field: Field, scores: NDArray[np.float32], served: Slate, by_rule: Slate, index: int) -> Reason:
    if index in served:
        return "chosen" if index in by_rule else "drawn"
    if not field.allowed[index]:
        return "not_near_enough"
    if not served:
        return "left_empty"
    if index in by_rule:  # a lot gave its place away
        return "lower"
    if not fits(field, served, index):
        return "same_as_another" if np.isin(field.group[index], field.group[list(served)]) else "another_failure"
    return _held_back(field, scores, by_rule, index)


def _held_back(field: Field, scores: NDArray[np.float32], by_rule: Slate, index: int) -> Reason:
    """Returns the rule that held back a candidate that might stand."""
    place = {other: number for number, other in enumerate(order(field, scores))}
    below = [other for other in by_rule if place[other] > place[index]]
    if not below:
        return "lower"
    proven = field.is_proven(index)
    if any(field.is_proven(other) != proven for other in below):
        return "displaced" if proven else "unproven"
    if field.source is not None and field.source[index] in field.source[list(by_rule)]:
        return "source"
    return "displaced" if proven else "unproven"
