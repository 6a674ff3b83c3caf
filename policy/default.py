"""The untrained policy: scores a case by its plan's agreement, its record, and its similarity to the query.

    score(c) = SCALE * (expected * log posterior(c) + log(agreement(c) + LEAST_AGREEMENT)
                        + (rrf + (expected - rrf) * (1 - said)^SILENCE_POWER) * log rrf(c)
                        + returned * proven(c) * known^KNOWN_POWER * (log rrf(c) + nearness(c)))

The agreement of plans is the expected utility of a case that goes well. Without near neighbours the names of the tools
decide (``policy.evidence``). ``said`` is the range of agreement among the candidates: if their plans agree alike, the
search counts as much as the expected reward. A task that comes back is answered by its own successes: the last term
counts if much is known near the query, and for proven cases alone; a case that only calls itself a success is
judged by what others did.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policy.evidence import JITTER, TYPICAL
from policy.features import COLUMN, Features, column

VERSION = "default-4"

PRIOR_SUCCESSES = 1.0
PRIOR_FAILURES = 1.0
"""Beta(1, 1): an unknown case is equally likely to help or not."""
REUSES = 2.0
"""Number of reuses on queries like the present one that weigh as much as the prior; reuses on others do not count."""
PROBABILITY_MARGIN = 0.02
"""Least distance of the expected reward from 0 and from 1."""
LEAST = 1e-9
"""Number in place of zero in a logarithm."""
LEAST_AGREEMENT = 0.02
"""Agreement added before the logarithm: a plan that no neighbour had is not impossible."""
KNOWN_POWER = 4
"""Power by which the weight of nearness falls with the unknown share near the query."""
SILENCE_POWER = 4
"""Power by which RRF loses its weight with the range of agreement."""
SCALE = 0.25
"""Factor that brings the scores to the range of log odds, as exploration and training take them."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of the parts of the score, in units of the agreement's, from no user's data; see docs/decisions.

    Attributes:
        expected: weight of the log of the expected reward.
        rrf: weight of the log of RRF, which orders cases whose plans agree alike.
        returned: weight of RRF and nearness together, for proven cases, if all is known near the query.
    """

    expected: float = 2.0
    rrf: float = 0.1
    returned: float = 6.0


WEIGHTS = Weights()
_TERMS = [COLUMN[name] for name in ("agreement", "unknown", "proven", "similarity")]


def posterior_mean(features: Features) -> NDArray[np.float32]:
    """Returns the expected reward of each case, (n,), within (0, 1).

    The mean of a Beta(1, 1) prior updated with the case's own reward, and moved by what its reuses on queries like this
    one earned over the expectation (shrinkage: James & Stein 1961): the case's own, or the mean of the profile's
    decisions if that is less. Else a case would lose by being shown for hard or unrelated queries, and cases that were
    never tried would win.
    """
    own = column(features, "reward")
    seen = np.isfinite(own)
    alone = (PRIOR_SUCCESSES + np.where(seen, own, 0)) / (PRIOR_SUCCESSES + PRIOR_FAILURES + seen)
    usual = np.maximum(column(features, "usual_reward"), 0)  # NaN where it is not known, which fmin passes over
    expected, count = np.fmin(usual, alone), counted(features, "near_count")
    gained = counted(features, "near_reward") - count * expected
    return np.clip(alone + gained / (REUSES + count), PROBABILITY_MARGIN, 1 - PROBABILITY_MARGIN).astype(np.float32)


def counted(features: Features, name: str) -> NDArray[np.float32]:
    """Returns a feature that is never below zero, (n,); 0 if unknown."""
    return np.fmax(column(features, name), 0)


def log_rrf(features: Features) -> NDArray[np.float32]:
    """Returns the log of each case's RRF over the best one's, (n,), always finite."""
    rrf = np.maximum(counted(features, "rrf"), LEAST)
    return np.asarray(np.log(rrf / rrf.max(initial=LEAST)), dtype=np.float32)


def log_posterior(features: Features) -> NDArray[np.float32]:
    """Returns the log of the posterior mean, (n,), always finite."""
    return np.asarray(np.log(posterior_mean(features)), dtype=np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """Terms of the scores of n candidates, (n,) each; their sum is the score.

    Attributes:
        found: ranks in the two halves of the search.
        record: its reward, and the outcomes of its reuses on queries like this one.
        plan: agreement of its plan with the query's likely needs.
        returned: similarity, if its task seems to have come back.
    """

    found: NDArray[np.float32]
    record: NDArray[np.float32]
    plan: NDArray[np.float32]
    returned: NDArray[np.float32]

    @property
    def total(self) -> NDArray[np.float32]:
        """The default's scores, (n,)."""
        return np.asarray(self.found + self.record + self.plan + self.returned, dtype=np.float32)


def scores(features: Features, weights: Weights = WEIGHTS) -> NDArray[np.float32]:
    """Returns the default's scores, (n,), higher is better, up to a constant of the query; always finite.

    A learned policy adds its residual to these numbers.
    """
    return parts(features, log_rrf(features), log_posterior(features), weights).total


def parts(
    features: Features, rrf: NDArray[np.float32], posterior: NDArray[np.float32], weights: Weights = WEIGHTS
) -> Parts:
    """Returns the parts of the scores, from the logs of RRF and of the posterior mean, which others need as well."""
    agreement, unknown, proven, similarity = np.minimum(np.fmax(features[:, _TERMS], 0), 1).T
    nearness = np.log(np.maximum((1 - TYPICAL) / (1 + JITTER - similarity), 1))  # 0: as far as other tasks usually are
    known = SCALE * weights.returned * proven * (1 - unknown) ** KNOWN_POWER
    said = float(np.ptp(agreement)) if len(agreement) else 0.0  # 0: the candidates' plans tell none from another
    found = weights.rrf + (weights.expected - weights.rrf) * (1 - said) ** SILENCE_POWER
    return Parts(
        found=np.asarray(SCALE * found * rrf, dtype=np.float32),
        record=SCALE * weights.expected * posterior,
        plan=SCALE * np.log(agreement + LEAST_AGREEMENT),
        returned=known * (rrf + nearness),
    )
