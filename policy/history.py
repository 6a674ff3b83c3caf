"""A bank's runs as content-free numbers, in the order of time: what is learned is learned from these."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policy.agreement import Matrix, Moves
from policy.channels import Terms

UNPROVEN_TRUST = 0.25
"""Weight of a run as a neighbour, and as a question, that only calls itself a success; a proven one has 1."""


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """The newest n runs of a bank in the order of time.

    Attributes:
        times: (n,), seconds since 1970 at which each was retained, sorted.
        terms: the terms of each task.
        vectors: (n, d) unit vectors of the tasks, a row of zeros where there is none.
        moves: the moves of each plan.
        went_well: (n,), true for runs that went well.
        trust: (n,), above 0 to 1, weight of each run as a neighbour: a run that only calls itself a success weighs
            less.
        weight: (n,), 0 to 1, how much each counts as a question: a repeat of a task, or a run that only calls itself a
            success, counts little.
    """

    times: NDArray[np.float64]
    terms: Sequence[Terms]
    vectors: Matrix
    moves: Sequence[Moves]
    went_well: NDArray[np.bool_]
    trust: Matrix
    weight: NDArray[np.float32]
