"""Which candidates say the same: equal plans, equal fate, and nearly equal words."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

NEAR_DUPLICATE = 0.8
"""Share of common words (Jaccard) from which two cases of one plan count as the same."""


def groups(candidates: Sequence[Any]) -> NDArray[np.int16]:
    """Returns each candidate's group, (n,): that of the first before it that says the same, or a new one.

    A candidate has ``task``, ``plan`` and ``failed``. The order is that of retrieval, whatever a policy makes of it.
    """
    leaders: dict[tuple[object, ...], list[tuple[int, frozenset[str]]]] = {}
    found = []
    for index, row in enumerate(candidates):
        words = frozenset(row.task.casefold().split())
        same_plan = leaders.setdefault((*row.plan, bool(row.failed)), [])
        group = next((leader for leader, said in same_plan if _nearly_equal(words, said)), index)
        if group == index:
            same_plan.append((index, words))
        found.append(group)
    return np.array(found, dtype=np.int16)


def _nearly_equal(one: frozenset[str], other: frozenset[str]) -> bool:
    union = len(one | other)
    return union == 0 or len(one & other) / union >= NEAR_DUPLICATE
