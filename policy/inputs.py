"""Turns a candidate's features into the network's inputs: takes logarithms, fills gaps, and computes the prior.

The prior is the log odds that follow from the candidate's place by the serving order.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from policy.features import COLUMN, Features

Array = NDArray[np.float32]

STEP = 0.5
"""Decrease of the prior's log odds for each 1 of the logarithm of a candidate's place by the serving order."""
CASE = ("similarity", "vote", "reward", "record", "step_count")
"""Inputs of the network's case part: features, with the number of steps as a logarithm."""
FIRST = 4
"""Number of candidates, the first by the serving order, whose means describe a query."""
QUERY = ("top_similarity", "log_candidates", *(f"first_{name}" for name in CASE))
"""Inputs of the network's query part. They include the means of all case inputs over the FIRST candidates, so that the
case part cannot gain by telling easy queries from hard ones, only by how a case differs from those that would be shown
without it (Mundlak 1978)."""

_FEATURES = np.array([COLUMN[name] for name in CASE])
_SIMILARITY, _REWARD, _STEPS = (CASE.index(name) for name in ("similarity", "reward", "step_count"))
UNKNOWN_REWARD = 0.5
"""Input for the reward of a case whose reward is unknown."""


@dataclass(frozen=True, eq=False)
class Inputs:
    """The network's inputs for the n candidates of one query; each input is computed when it is first read."""

    features: Features

    @cached_property
    def prior(self) -> Array:
        """Untrained default's log odds of a reward for each candidate, (n,), by its place in the serving order."""
        place = np.maximum(-np.nan_to_num(self.features[:, COLUMN["order"]]), 0)  # 0 for the first
        return np.asarray(-STEP * np.log1p(place), dtype=np.float32)

    @cached_property
    def case(self) -> Array:
        """Inputs of the network's case part, (n, len(CASE)), finite."""
        case = self.features[:, _FEATURES].astype(np.float32)
        case[:, _REWARD] = np.nan_to_num(case[:, _REWARD], nan=UNKNOWN_REWARD)
        case[:, _STEPS] = np.log1p(np.fmax(case[:, _STEPS], 0))
        return np.nan_to_num(case)

    @cached_property
    def query(self) -> Array:
        """Inputs of the network's query part, which describe how hard the query is, (1, len(QUERY))."""
        if not len(self.case):
            return np.zeros((1, len(QUERY)), np.float32)
        own = [self.case[:, _SIMILARITY].max(), np.log(len(self.case))]
        first = np.argsort(-self.prior, kind="stable")[:FIRST]
        return np.concatenate([own, self.case[first].mean(axis=0)], dtype=np.float32)[None]
