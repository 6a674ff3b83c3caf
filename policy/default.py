"""The untrained policy: reciprocal rank fusion, weighted by how well each case has served so far."""

import numpy as np
from numpy.typing import NDArray

from policy.features import Features, column

VERSION = "default-1"

PRIOR_SUCCESSES = 1.0
PRIOR_FAILURES = 1.0
"""Beta(1, 1): a case of which nothing is known is as likely to help as not."""


def posterior_mean(features: Features) -> NDArray[np.float32]:
    """Returns the expected reward of each case, (n,), within (0, 1).

    The mean of a Beta(1, 1) prior updated with the case's own reward and the rewards of its reuses.
    """
    own = column(features, "reward")
    seen = np.isfinite(own)
    successes = PRIOR_SUCCESSES + np.where(seen, own, 0) + column(features, "reuse_reward")
    trials = PRIOR_SUCCESSES + PRIOR_FAILURES + seen + column(features, "reuse_count")
    return (successes / trials).astype(np.float32)


def scores(features: Features) -> NDArray[np.float32]:
    """Returns what the default orders by, (n,), higher is better: RRF times the posterior mean."""
    return (column(features, "rrf") * posterior_mean(features)).astype(np.float32)
