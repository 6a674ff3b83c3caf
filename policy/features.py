"""The features of a candidate: their names, their order and their version, for serving and training alike."""

from collections.abc import Mapping, Sequence
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

VERSION = 1

NAMES = (
    "semantic_rank",  # 1-based; NaN: not in the vector half
    "keyword_rank",  # 1-based; NaN: not in the keyword half
    "similarity",  # cosine, -1 to 1; NaN: no vector
    "rrf",  # above 0, by the formula of the request
    "reward",  # the case's own, 0 to 1; NaN: unknown
    "reuse_count",  # rewarded retrievals that used the case, shared ones in part
    "reuse_reward",  # sum of their rewards
    "occurrences",  # runs merged into the case, itself included
    "age_days",
    "step_count",
    "error_count",
    "failed",  # 1: the outcome is failure or aborted
)
COLUMN = {name: index for index, name in enumerate(NAMES)}

_of = itemgetter(*NAMES)

Features = NDArray[np.float32]
"""(candidates, len(NAMES)), in the order of NAMES."""


def matrix(candidates: Sequence[Mapping[str, float | None]]) -> Features:
    """Returns the candidates' features, (n, len(NAMES)); a missing number is NaN."""
    return np.array([_of(row) for row in candidates], dtype=np.float32).reshape(len(candidates), len(NAMES))


def column(features: Features, name: str) -> NDArray[np.float32]:
    """Returns one feature of every candidate, (n,)."""
    return features[:, COLUMN[name]]
