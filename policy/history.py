"""A bank's runs as numbers, free of content, in the order of time; ``policy.replay`` learns from them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policy.agreement import Matrix, Moves
from policy.channels import Terms

UNPROVEN_TRUST = 0.25
"""Weight, as a neighbour and as a question, of a run that only calls itself a success; a proven success weighs 1."""


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """The newest n runs of a bank in the order of time.

    Attributes:
        times: (n,), seconds since 1970 at which each run was retained, sorted.
        vectors: (n, d), unit vector of each run's task; a row of zeros for a task without a vector.
        trust: (n,), above 0 to 1, weight of each run as a neighbour in the vote of plans; less than 1 for a run that
            only calls itself a success.
        weight: (n,), 0 to 1, weight of each run as a question of the replay; small for a repeat of a task and for a run
            that only calls itself a success.
    """

    times: NDArray[np.float64]
    terms: Sequence[Terms]
    vectors: Matrix
    moves: Sequence[Moves]
    went_well: NDArray[np.bool_]
    trust: Matrix
    weight: NDArray[np.float32]
