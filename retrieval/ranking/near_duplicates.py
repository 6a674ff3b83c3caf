"""Groups candidates that say the same: equal plans, equal fate, and nearly equal words."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from retrieval.search.candidates import Candidate

NEAR_DUPLICATE = 0.8
"""Share of common words (Jaccard) from which two cases of one plan count as the same."""


def groups(candidates: Sequence[Candidate]) -> NDArray[np.int16]:
    """Returns each candidate's group, (n,): that of the first before it that says the same, or a new one.

    The order is that of retrieval, whatever a policy makes of it.
    """
    alike: dict[tuple[object, ...], list[int]] = {}
    for index, row in enumerate(candidates):
        alike.setdefault((*row.plan, bool(row.failed)), []).append(index)
    group = np.arange(len(candidates), dtype=np.int16)
    for members in alike.values():
        if len(members) > 1:
            _lead(group, members, [frozenset(candidates[index].task.casefold().split()) for index in members])
    return group


def _lead(group: NDArray[np.int16], members: Sequence[int], words: Sequence[frozenset[str]]) -> None:
    """Gives each member, all of one plan, the first member before it that says the same; in place."""
    leaders: list[int] = []
    for place, index in enumerate(members):
        leader = next((other for other in leaders if _nearly_equal(words[place], words[other])), None)
        if leader is None:
            leaders.append(place)
        else:
            group[index] = members[leader]


def _nearly_equal(one: frozenset[str], other: frozenset[str]) -> bool:
    union = len(one | other)
    return union == 0 or len(one & other) / union >= NEAR_DUPLICATE
