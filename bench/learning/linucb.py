"""LinUCB, the baseline that explores by its own uncertainty (Li et al. 2010, disjoint arms made one)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policy.logged import Floats

Reals = NDArray[np.floating[Any]]

RIDGE, WIDTH = 1.0, 0.1


@dataclass(frozen=True, slots=True, eq=False)
class LinUcb:
    """What it learned over d numbers of a candidate."""

    inverse: Floats  # (d, d)
    weights: Floats  # (d,)

    @classmethod
    def fit(cls, seen: Floats, reward: Floats) -> "LinUcb":
        """Returns what contexts (n, d) and their rewards (n,) teach."""
        inverse: Floats = np.linalg.inv(seen.T @ seen + RIDGE * np.eye(seen.shape[1])).astype(np.float64)
        return cls(inverse, inverse @ seen.T @ reward)

    def scores(self, context: Floats) -> Floats:
        """Returns upper confidence bounds, (..., n), of contexts (..., n, d)."""
        width = np.sqrt(np.einsum("...i,ij,...j->...", context, self.inverse, context))
        return np.asarray(context @ self.weights + WIDTH * width)


def context(similarity: Reals, rrf: Reals, ranks: tuple[Reals, Reals], record: Reals) -> Floats:
    """Returns (..., n, 6): level, similarity, RRF relative to the top, log of two ranks, the record of reuse."""
    relative = rrf / rrf.max(axis=-1, keepdims=True)
    columns = [np.ones(rrf.shape), similarity, relative, *map(np.log, ranks), record]
    return np.stack(columns, axis=-1).astype(np.float64)
