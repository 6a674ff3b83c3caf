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
        if len(members) == 1:
            continue
        leaders: dict[int, frozenset[str]] = {}  # members that lead a group, with their words
        for index in members:
            words = frozenset(candidates[index].task.casefold().split())
            leader = next(
                (
                    other
                    for other, theirs in leaders.items()
                    if len(words & theirs) / max(len(words | theirs), 1) >= NEAR_DUPLICATE or not words | theirs
                ),
                None,
            )
            if leader is None:
                leaders[index] = words
            else:
                group[index] = leader
    return group
