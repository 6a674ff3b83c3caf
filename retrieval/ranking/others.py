"""Chooses the runs beside the slate: one that failed near the task, and another way in which it was done.

A place on the slate goes to the case that is expected to help most, so that a failure stands behind every success. A
fifth run helps if it says something else about this task: a failure as near as the slate, or, where the plans of the
slate do not agree, another way as near as half of the slate. Two further ways more did not help an agent. The slate
stays as it is, and an empty slate stands alone, to show what is done without memory.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from policy.slate import Field, Slate

WARNING_DEPTH = 8
"""Candidates, in the order of retrieval, among which a failure is looked for; later ones are about another task."""


def others(field: Field, ordered: Sequence[int], slate: Slate, plans: Sequence[Sequence[str]]) -> list[int]:
    """Returns the candidates to show below the slate: at most one failure, and then at most one alternative.

    Args:
        field: candidates in the order of retrieval.
        ordered: allowed candidates, best first.
        slate: candidates on the slate.
        plans: plan of each candidate, in words or in tokens that are equal where the words are.
    """
    if not slate:
        return []
    near, warning = _near(field, slate, 0), list[int]()
    if not field.failed[list(slate)].any():
        warning = [index for index in sorted(ordered) if index < WARNING_DEPTH and field.failed[index] and near[index]][
            :1
        ]
    successes = [tuple(plans[index]) for index in slate if not field.failed[index]]
    if len(successes) > 1 and len(set(successes)) == 1:
        return warning
    near = _near(field, slate, 0.5)
    # the best success with another plan; a proven one if the slate has a proven case
    plans_shown = {*successes, ()}
    any_counts = not any(field.is_proven(index) for index in slate)
    for index in ordered:
        counts = near[index] and not field.failed[index] and (any_counts or field.is_proven(index))
        if counts and tuple(plans[index]) not in plans_shown:
            return [*warning, index]
    return warning


def _near(field: Field, slate: Slate, least: float) -> NDArray[np.bool_]:
    """Returns the candidates at least as similar to the query as this quantile of the slate; all if unknown."""
    if field.similarity is None or np.isnan(field.similarity[list(slate)]).any():
        return np.ones(len(field.failed), dtype=bool)
    near: NDArray[np.bool_] = field.similarity >= np.quantile(field.similarity[list(slate)], least)
    return near
