"""The features of a candidate: their names, their order and their version, for serving and training alike.

Three parts stand side by side: the candidate's OWN record, the evidence of similar runs (``policy.evidence``), and the
outcomes of similar decisions (``policy.experience``). They are kept, and scored, at half precision, so that the logged
features are those that were served, to the bit.
"""

from collections.abc import Sequence
from operator import itemgetter
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from policy import evidence, experience

VERSION = 6

OWN = (
    "semantic_rank",  # 1-based; NaN: not in the vector half
    "keyword_rank",  # 1-based; NaN: not in the keyword half
    "similarity",  # cosine, -1 to 1; NaN: no vector
    "rrf",  # above 0, by the formula of the request
    "reward",  # the case's own, 0 to 1; NaN: unknown
    "reuse_count",  # rewarded retrievals that used the case, shared ones in part
    "occurrences",  # runs merged into the case, itself included
    "age_days",
    "idle_days",  # since it was last on a rewarded slate, or retained
    "step_count",
    "error_count",
    "plan_steps",
    "tag_count",
    "whole_task",  # 1: the case is a whole run, 0: a subtask or a tool's
    "failed",  # 1: the outcome is failure or aborted
    "usual_reward",  # 0 to 1: mean of the profile's latest decisions, same for all candidates; NaN: none was rewarded
    "proven",  # 1: it is a success, and others than the run itself said so later
)
NAMES = (*OWN, *evidence.NAMES, *experience.NAMES)
COLUMN = {name: index for index, name in enumerate(NAMES)}

Features = NDArray[np.float32]
"""Matrix (candidates, len(NAMES)), in the order of NAMES."""

_LARGEST = float(np.finfo(np.float16).max)
_own = itemgetter(*OWN)


class OwnRecord(Protocol):
    """The own record of one candidate: a mapping, or a row of the database, which is read without conversion."""

    def __getitem__(self, name: str, /) -> float | None:
        """Returns the number of this name, of those in OWN; None is missing."""


def own(candidates: Sequence[OwnRecord]) -> NDArray[np.float32]:
    """Returns the candidates' own record, (n, len(OWN)); a missing number is NaN."""
    return np.array([_own(row) for row in candidates], dtype=np.float32).reshape(len(candidates), len(OWN))


def matrix(*parts: NDArray[np.float32]) -> Features:
    """Returns the parts side by side, in the order of NAMES, as they come back from the log."""
    return unpacked(packed(np.concatenate(parts, axis=1)))


def packed(features: Features) -> bytes:
    """Returns the features as they are logged: float16, row by row."""
    return np.clip(features, -_LARGEST, _LARGEST).astype("<f2").tobytes()


def unpacked(logged: bytes) -> Features:
    """Returns the features that were logged."""
    return np.frombuffer(logged, dtype="<f2").astype(np.float32).reshape(-1, len(NAMES))


def column(features: Features, name: str) -> NDArray[np.float32]:
    """Returns one feature of every candidate, (n,)."""
    return features[:, COLUMN[name]]
