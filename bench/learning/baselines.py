"""Benchmark 2, what the policy is measured against over the same pool and by the same slate rules, and its controls.

The fixed rules that need no pool and no log are in ``tau``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bench.learning import tau, tau_folds
from bench.learning.learner import Decision
from bench.learning.linucb import LinUcb, Reals, context
from bench.learning.raw import RawEmbeddings, classify
from bench.learning.rules import Judged, SplitGap, blended, split_gap
from policy import default
from policy.decide import Policy, score
from policy.features import Features, column
from policy.inputs import LAST_RANK
from policy.logged import Floats, Ints

Order = Callable[[tau_folds.Question, Features], Reals]
"""Scores a question's candidates, (k,), from what was seen of them; higher is better."""

POSTERIOR, BLEND, LINUCB, RAW = (
    "reuse posterior alone",
    "fixed blend of similarity and Q",
    "LinUCB",
    "raw-embedding MLP",
)
HELPS = 0.5
"""Utility from which a candidate counts as helpful when pairs are distinguished."""
GAP_PLACES = 8
"""How many of a question's candidates are distinguished."""


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


@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """What a learner is given: n slates or candidates, each with its reward."""

    seen: Sequence[Features]
    places: Sequence[Sequence[int]]
    """Of each: which of the candidates shared the reward."""
    query: Floats  # (n, dimension)
    cases: Sequence[Ints]
    """Of each: the runs that are its candidates."""
    reward: Floats  # (n,)

    @classmethod
    def of_log(cls, log: Iterable[Decision]) -> "Labelled":
        """Returns the decisions that served something."""
        kept = [decision for decision in log if decision.slate]
        return cls(
            seen=[decision.features for decision in kept],
            places=[decision.slate for decision in kept],
            query=np.stack([decision.scene.vector for decision in kept]),
            cases=[decision.scene.case for decision in kept],
            reward=np.array([decision.reward for decision in kept]),
        )


def learners(domain: tau.Domain, rows: Labelled) -> dict[str, Order]:
    """Returns LinUCB and the network over raw embeddings, fitted to these rows."""
    return {LINUCB: _lin_ucb(rows), RAW: _raw(domain, rows)}


def _lin_ucb(rows: Labelled) -> Order:
    """A slate's places share its outcome, so its context is their mean."""
    contexts = {id(seen): _context(seen) for seen in {id(seen): seen for seen in rows.seen}.values()}
    shared = zip(rows.seen, rows.places, strict=True)
    means = [contexts[id(seen)][list(places)].mean(axis=0) for seen, places in shared]
    learned = LinUcb.fit(np.stack(means), rows.reward)
    return lambda _question, seen: learned.scores(_context(seen))


def _context(seen: Features) -> Floats:
    semantic, keyword = (np.nan_to_num(column(seen, f"{half}_rank"), nan=LAST_RANK) for half in ("semantic", "keyword"))
    return context(column(seen, "similarity"), column(seen, "rrf"), (semantic, keyword), default.posterior_mean(seen))


def _raw(domain: tau.Domain, rows: Labelled) -> Order:
    sizes = [len(places) for places in rows.places]
    served = np.concatenate([cases[list(places)] for cases, places in zip(rows.cases, rows.places, strict=True)])
    net = RawEmbeddings(np.repeat(rows.query, sizes, axis=0), domain.vectors[served], np.repeat(rows.reward, sizes))

    def order(question: tau_folds.Question, _seen: Features) -> Reals:
        scores = net.scores(domain.vectors[[question.run]], domain.vectors[question.candidates][None])
        return scores.reshape(-1)

    return order


def gap(domain: tau.Domain, questions: Sequence[tau_folds.Question], seed: int) -> SplitGap:
    """Returns how well raw vectors seem to tell what helps, when decisions are split, and when users are."""
    asked = [question for question in questions if len(question.candidates) >= GAP_PLACES]
    judged = Judged(
        query=domain.vectors[[question.run for question in asked]],
        case=np.stack([domain.vectors[question.candidates[:GAP_PLACES]] for question in asked]),
        works=np.stack([question.utility[:GAP_PLACES] >= HELPS for question in asked]),
        owner=np.unique([question.user for question in asked], return_inverse=True)[1],
    )
    return split_gap(judged, classify, np.random.default_rng(seed))
