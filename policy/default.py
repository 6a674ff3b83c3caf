"""The untrained policy: reciprocal rank fusion, weighted by how well each case went and has served since."""

import numpy as np
from numpy.typing import NDArray

from policy.features import Features, column

VERSION = "default-3"

PRIOR_SUCCESSES = 1.0
PRIOR_FAILURES = 1.0
"""Beta(1, 1): a case of which nothing is known is as likely to help as not."""
REUSES = 2.0
"""How many reuses on queries like the present one weigh as much as what was known before; on others none counts."""
PROBABILITY_MARGIN = 0.02
"""How near to 0 and to 1 the expected reward may come."""
LEAST = 1e-9
"""What stands for zero in a logarithm."""


def posterior_mean(features: Features) -> NDArray[np.float32]:
    """Returns the expected reward of each case, (n,), within (0, 1).

    The mean of a Beta(1, 1) prior updated with the case's own reward, and moved by what its reuses on queries like this
    one earned more, or less, than was to be expected (shrinkage: James & Stein 1961): of the case, or of the profile's
    decisions where those usually earn less. Else a case would lose by being shown for hard queries, or for those that
    it has nothing to do with, and cases that nobody ever tried would win.
    """
    own = column(features, "reward")
    seen = np.isfinite(own)
    alone = (PRIOR_SUCCESSES + np.where(seen, own, 0)) / (PRIOR_SUCCESSES + PRIOR_FAILURES + seen)
    expected, count = np.fmin(counted(features, "usual_reward", np.inf), alone), counted(features, "near_count")
    gained = counted(features, "near_reward") - count * expected
    return np.clip(alone + gained / (REUSES + count), PROBABILITY_MARGIN, 1 - PROBABILITY_MARGIN).astype(np.float32)


def counted(features: Features, name: str, unknown: float = 0.0) -> NDArray[np.float32]:
    """Returns a feature that is never below zero, (n,); where it is not known nothing was counted."""
    return np.maximum(np.nan_to_num(column(features, name), nan=unknown), 0)


def log_rrf(features: Features) -> NDArray[np.float32]:
    """Returns the log of each case's RRF over the best one's, (n,), always finite."""
    rrf = np.maximum(counted(features, "rrf"), LEAST)
    return np.asarray(np.log(rrf / rrf.max(initial=LEAST)), dtype=np.float32)


def log_posterior(features: Features) -> NDArray[np.float32]:
    """Returns the log of the posterior mean, (n,), always finite."""
    return np.asarray(np.log(np.maximum(posterior_mean(features), LEAST)), dtype=np.float32)


def scores(features: Features) -> NDArray[np.float32]:
    """Returns what the default orders by, (n,), higher is better: the log of RRF times the posterior mean.

    Up to a constant of the query. What is learned adds to these very numbers: were the product ordered here and
    its logarithm there, rounding would part them wherever two cases are nearly equal.
    """
    return log_rrf(features) + log_posterior(features)
