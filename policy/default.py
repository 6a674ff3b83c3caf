"""The untrained policy: what a case's plan has for it, how well it went and has served since, and how near it is.

    score(c) = SCALE * (expected * log posterior(c) + log(agreement(c) + LEAST_AGREEMENT)
                        + (rrf + (expected - rrf) * (1 - said)^SILENCE_POWER) * log rrf(c)
                        + returned * proven(c) * known^KNOWN_POWER * (log rrf(c) + nearness(c)))

The agreement of plans is the utility that a case is expected to have, if it goes well. It weighs its own evidence:
where nobody near speaks, the names of the tools do (``policy.evidence``). ``said`` is the range of agreement among the
candidates: where their plans tell none from another, the search counts as much as the expected reward. A task that
comes back is answered by its own successes: the last term counts where much is known near the query, and for
what others say went well; what only calls itself a success is held to what others did.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policy.evidence import JITTER, TYPICAL
from policy.features import COLUMN, Features, column

VERSION = "default-4"

PRIOR_SUCCESSES = 1.0
PRIOR_FAILURES = 1.0
"""Beta(1, 1): a case of which nothing is known is as likely to help as not."""
REUSES = 2.0
"""How many reuses on queries like the present one weigh as much as what was known before; on others none counts."""
PROBABILITY_MARGIN = 0.02
"""How near to 0 and to 1 the expected reward may come."""
LEAST = 1e-9
"""What stands for zero in a logarithm."""
LEAST_AGREEMENT = 0.02
"""Added before the logarithm: what no neighbour did is not impossible."""
KNOWN_POWER = 4
"""How fast the worth of nearness falls with the weight of what is known near the query."""
SILENCE_POWER = 4
"""How fast RRF loses its weight with what the plans tell."""
SCALE = 0.25
"""Brings the scores to the range of log odds: exploration and training take them for such."""


@dataclass(frozen=True, slots=True)
class Weights:
    """What the parts of the score count, in units of the agreement's. No user's number is in them; see docs/decisions.

    Attributes:
        expected: of the log of the expected reward.
        rrf: of the log of RRF: what orders cases whose plans agree alike.
        returned: of RRF and nearness together, for what others say went well, where all is known near the query.
    """

    expected: float = 2.0
    rrf: float = 0.1
    returned: float = 6.0


WEIGHTS = Weights()
_TERMS = [COLUMN[name] for name in ("agreement", "unknown", "proven", "similarity")]


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
    usual = np.maximum(column(features, "usual_reward"), 0)  # NaN where it is not known, which fmin passes over
    expected, count = np.fmin(usual, alone), counted(features, "near_count")
    gained = counted(features, "near_reward") - count * expected
    return np.clip(alone + gained / (REUSES + count), PROBABILITY_MARGIN, 1 - PROBABILITY_MARGIN).astype(np.float32)


def counted(features: Features, name: str) -> NDArray[np.float32]:
    """Returns a feature that is never below zero, (n,); where it is not known nothing was counted."""
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
    """What the score of each of n candidates is made of, (n,) each; their sum is the score.

    Attributes:
        found: by its ranks in the two halves of the search.
        record: by how well it went, and what came of it on queries like this one.
        plan: by how well its plan agrees with what the query is expected to need.
        returned: by how near it is, where its task seems to have come back.
    """

    found: NDArray[np.float32]
    record: NDArray[np.float32]
    plan: NDArray[np.float32]
    returned: NDArray[np.float32]

    @property
    def total(self) -> NDArray[np.float32]:
        """What the default orders by, (n,)."""
        return np.asarray(self.found + self.record + self.plan + self.returned, dtype=np.float32)


def scores(features: Features, weights: Weights = WEIGHTS) -> NDArray[np.float32]:
    """Returns what the default orders by, (n,), higher is better, up to a constant of the query; always finite.

    What is learned adds to these very numbers.
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
