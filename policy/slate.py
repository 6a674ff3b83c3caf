"""From scores to a slate: no repeats, at most one failure, and no source and no unproven claims that swamp it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policy.features import Features, column

FAILURES_ON_SLATE = 1
SIMILARITY_ERROR = 0.0005
"""What half precision may take from a similarity."""
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
        source: (n,), who wrote the case; None: nobody knows, and each counts as another.
        proven: (n,), whether anybody but the run itself says that it went well; None: all are.
    """

    group: NDArray[np.int16]
    failed: NDArray[np.bool_]
    allowed: NDArray[np.bool_]
    source: NDArray[np.int16] | None = None
    proven: NDArray[np.bool_] | None = None


def field_of(
    features: Features, group: NDArray[np.int16], source: NDArray[np.int16], min_similarity: float | None
) -> Field:
    """Returns the candidates for a slate's rules; with a threshold, those alone that are known to be as near."""
    near = np.ones(len(features), dtype=bool)
    if min_similarity is not None:  # False where there is no similarity
        near = column(features, "similarity") >= np.float32(min_similarity - SIMILARITY_ERROR)
    failed, proven = column(features, "failed") > 0, column(features, "proven") > 0
    return Field(group, failed, near, source, proven)


def order(field: Field, scores: NDArray[np.float32]) -> list[int]:
    """Returns the allowed candidates, the highest score first; ties keep the order of the log."""
    return [int(index) for index in np.argsort(-scores, kind="stable") if field.allowed[index]]


def choose(field: Field, ordered: list[int], k: int) -> Slate:
    """Returns the first k that may stand together, fewer if the rules leave no more.

    An empty place is worth more than one that misleads: repeats are passed over, and so is every failure after
    the first. Among the top DEPTH, one source and unproven cases may each take half of the places as long as others
    are there to take the rest; nobody comes from farther down because of that.
    """
    slate: Slate = ()
    for index in ordered[:DEPTH]:
        if len(slate) < k and fits(field, slate, index) and not _swamps(field, slate, index, k):
            slate += (index,)
    for index in ordered:
        if len(slate) < k and fits(field, slate, index):
            slate += (index,)
    place = {index: number for number, index in enumerate(ordered)}
    return tuple(sorted(slate, key=lambda index: place[index]))


def _swamps(field: Field, slate: Slate, index: int, k: int) -> bool:
    """Returns whether the candidate's source, or the unproven, would hold more than half of the places."""
    chosen, most = [*slate, index], max(1, k // 2)
    if field.source is not None and (field.source[chosen] == field.source[index]).sum() > most:
        return True
    return field.proven is not None and not field.proven[index] and (~field.proven[chosen]).sum() > most


def fits(field: Field, slate: Slate, index: int) -> bool:
    """Returns whether the candidate may join the slate."""
    if index in slate or field.group[index] in field.group[list(slate)]:
        return False
    return not field.failed[index] or field.failed[list(slate)].sum() < FAILURES_ON_SLATE


def contenders(field: Field, ordered: list[int], slate: Slate) -> list[int]:
    """Returns who of the top DEPTH could take the slate's last place, and who has it now wherever it stands."""
    top = ordered[:DEPTH]
    return [index for index in ordered if index == slate[-1] or (index in top and fits(field, slate[:-1], index))]
