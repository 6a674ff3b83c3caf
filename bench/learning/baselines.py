"""Benchmark 2, what the policy is measured against over the same pool and by the same slate rules.

The fixed rules that need no pool and no log are in ``tau``.
"""

from collections.abc import Callable, Mapping

from bench.learning import tau_folds
from bench.learning.rules import Reals, blended
from policy import default
from policy.decide import Policy, score
from policy.features import Features, column

Order = Callable[[tau_folds.Question, Features], Reals]
"""Scores a question's candidates, (k,), from what was seen of them; higher is better."""

POSTERIOR, BLEND = "reuse posterior alone", "fixed blend of similarity and Q"


def by(policy: Policy | None) -> Order:
    """Returns the order of a policy; None is the untrained default."""
    return lambda _question, seen: score(policy, seen).total


def posterior_alone(_question: tau_folds.Question, seen: Features) -> Reals:
    """Returns the expected reward by each case's own record; ties go to the default's first."""
    return default.posterior_mean(seen)


def blend(_question: tau_folds.Question, seen: Features) -> Reals:
    """Returns similarity and Q in equal parts, each as a z-score within the pool; Q is the case's expected reward."""
    return blended(column(seen, "similarity"), default.posterior_mean(seen))


FIXED: Mapping[str, Order] = {POSTERIOR: posterior_alone, BLEND: blend}
