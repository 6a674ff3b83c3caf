"""From scores to a slate: no two candidates that say the same, at most one failure, in a total order."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FAILURES_ON_SLATE = 1
DEPTH = 8
"""How far down the order exploration reaches."""

Slate = tuple[int, ...]
"""Indices of candidates, by place; empty: nothing is expected to help."""


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """The candidates as far as a slate's rules look at them; n candidates in the order of the log.

    Attributes:
        group: (n,), candidates of one group say the same.
        failed: (n,), whether the run failed.
        allowed: (n,), whether the request's limits let the candidate through.
    """

    group: NDArray[np.int16]
    failed: NDArray[np.bool_]
    allowed: NDArray[np.bool_]


def order(field: Field, scores: NDArray[np.float32]) -> list[int]:
    """Returns the allowed candidates, the highest score first; ties keep the order of the log."""
    return [int(index) for index in np.argsort(-scores, kind="stable") if field.allowed[index]]


def choose(field: Field, ordered: list[int], k: int) -> Slate:
    """Returns the first k that may stand together, fewer if the rules leave no more.

    An empty place is worth more than one that misleads: repeats are passed over, and so is every failure after
    the first.
    """
    slate: Slate = ()
    for index in ordered:
        if len(slate) == k:
            break
        if fits(field, slate, index):
            slate += (index,)
    return slate


def fits(field: Field, slate: Slate, index: int) -> bool:
    """Returns whether the candidate may join the slate."""
    if index in slate or field.group[index] in field.group[list(slate)]:
        return False
    return not field.failed[index] or field.failed[list(slate)].sum() < FAILURES_ON_SLATE


def contenders(field: Field, ordered: list[int], slate: Slate) -> list[int]:
    """Returns who of the top DEPTH could take the slate's last place, and who has it now wherever it stands."""
    top = ordered[:DEPTH]
    return [index for index in ordered if index == slate[-1] or (index in top and fits(field, slate[:-1], index))]
