"""Chooses runs to show below the slate: one that failed at a similar task, and one that did the task in another way.

The places of the slate go to the cases that are expected to help most, so that a failure stands behind every success. A
fifth run helps if it says something else about the task: a failure as near to the query as the slate, or another plan
as near as half of the slate. Two plans more did not help an agent. The slate itself does not change, and nothing is
shown below an empty slate, which measures rewards without memory.
"""

from collections.abc import Callable, Sequence
from math import isnan
from statistics import median

import numpy as np
from numpy.typing import NDArray

from policy.slate import Slate, Traits

WARNING_DEPTH = 8
"""Number of first candidates, in the order of retrieval, among which a failure is chosen; others have other tasks."""


def others(traits: Traits, ordered: Sequence[int], slate: Slate, plans: Sequence[Sequence[str]]) -> list[int]:
    """Returns indices of candidates to show below the slate: at most one failure, then one with another plan."""
    if not slate:
        return []
    near, warning = _near(traits, slate, min), list[int]()
    if not traits.failed[list(slate)].any():
        warning = [
            index for index in sorted(ordered) if index < WARNING_DEPTH and traits.failed[index] and near[index]
        ][:1]
    near = _near(traits, slate, median)
    # the best success with another plan; a proven one if the slate has a proven case
    groups = traits.group[list(slate)]
    any_counts = not any(traits.proven[index] for index in slate)
    for index in ordered:
        counts = near[index] and not traits.failed[index] and (any_counts or traits.proven[index])
        if counts and plans[index] and traits.group[index] not in groups:
            return [*warning, index]
    return warning


def _near(traits: Traits, slate: Slate, least: Callable[[list[float]], float]) -> NDArray[np.bool_]:
    """Returns which candidates are at least as similar to the query as ``least`` of the slate; all if unknown."""
    known = traits.similarity[list(slate)].tolist()
    if any(map(isnan, known)):
        return np.ones(len(traits.failed), dtype=bool)
    near: NDArray[np.bool_] = traits.similarity >= np.float32(least(known))
    return near
