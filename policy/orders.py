"""Orders: functions that rank past runs for a query by their channels; ``policy.replay`` chooses one for each bank.

Let s_c(q, j) be channel c of run j for query q, and A(i, j) the agreement of two plans. Simplest first:

    words, rare, meaning     the channel alone
    fused    reciprocal rank fusion of rare and meaning (Cormack, Clarke & Büttcher 2009)
    telling  the channel alone
    mixture  m(q, j) = sum_c beta_c s_c(q, j), beta >= 0
    vote     (DOUBT + sum_j p(q, j) A(i, j)) exp(LEAN (m(q, i) - max m)), p = softmax of m over the runs that did not
             fail, times their trust and record
    outcomes the vote times (DOUBT + W(q, i)) / (DOUBT + W(q, i) + BLAME F(q, i)), W and F the shares of q's neighbours
             with run i's plan that did not fail, and that failed, by their trust; the newest runs with the plan count
             most (FORGETS)

The sum is the expected agreement of a plan with the plan that the query needs, if a neighbour has the needed plan.
Among plans with about equal agreement the nearest run comes first, because its task may be the query's. beta maximises
the expected agreement on the bank's own runs, each asked with the ones before it (neighbourhood components: Goldberger,
Roweis, Hinton & Salakhutdinov 2004), pulled to START.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from policy.agreement import SAME, Matrix

Mask = NDArray[np.bool_]

MIXED = ("rare", "telling", "meaning", "recent")
"""Channels that the mixture adds up."""
START = np.array([4.0, 10.0, 6.0, 0.3], dtype=np.float32)
"""Weights of the mixture before anything is learned, in the order of MIXED."""
AGED = 0.99
"""Factor of a question's weight in the fit for each later question, so that the newest count most."""
PULL = 2.0
"""Strength of the pull to START: a loss of PULL / 2 for each weight that is e times as large or as small."""
STEPS, STEP = 40, 0.15
"""Number of steps of the fit, and the length of a step in the logarithm of a weight."""
RRF_K = 50.0
"""Constant of reciprocal rank fusion, which is added to each rank."""
DOUBT = 0.02
"""Expected agreement that is added for every plan, because the needed plan may be no neighbour's."""
LEAN = 0.05
"""Increase of the logarithm of a run's vote for each 1 of its mixture."""
FORGETS = 0.5
"""Factor of what a run says of its plan for each newer run with the plan."""
BLAME = 4.0
"""Weight of a run that failed, against one that did not, in what both say of their plan."""
NEVER = np.float32(-1e9)
"""Score of a run that the agent may not be told of."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of m queries with n runs: the numbers by which orders rank the runs for each query.

    Attributes:
        near: (m, n) for each channel, by its name: the nearness of each run to each query.
        good: (m, n), true for runs that did not fail and that the bank held at the query.
        trust: (n,), above 0 to 1, weight of each run as a neighbour, as ``policy.history.trust_of`` computes it.
        agreement: (n, n), agreement of the runs' plans.
        failed: (m, n), true for runs that failed and that the bank held at the query.
        newer: (m, n), sum of the trust of newer runs with the run's plan that the bank held at the query.
        record: (n,), 0 to 1, weight of each run in the vote for how decisions went that followed it; it does not weigh
            the run's own outcome. Replay has no such decisions, and 1.
    """

    near: Mapping[str, Matrix]
    good: Mask
    trust: Matrix
    agreement: Matrix
    failed: Mask
    newer: Matrix
    record: Matrix | float = 1.0

    def first(self, count: int) -> Self:
        """Returns the comparison of the first ``count`` queries with as many runs."""
        these = slice(count), slice(count)
        near = {name: each[these] for name, each in self.near.items()}
        return type(self)(
            near,
            self.good[these],
            self.trust[:count],
            self.agreement[these],
            self.failed[these],
            self.newer[these],
        )


def mixture(comparison: Comparison, weights: NDArray[np.float32]) -> Matrix:
    """Returns the weighted sum of the channels, (m, n); weights are (4,) for all queries, or (m, 4) for each query."""
    each = np.atleast_2d(weights)
    return np.asarray(sum(each[:, [c]] * comparison.near[name] for c, name in enumerate(MIXED)), dtype=np.float32)


def softmax(scores: Matrix, mask: Mask) -> Matrix:
    """Returns each query's weights of the runs in its mask, (m, n), with sum 1; zeros if the mask has no run."""
    shifted = np.where(mask, scores, NEVER)
    power = np.exp(shifted - shifted.max(axis=1, keepdims=True, initial=NEVER)) * mask
    return np.asarray(power / np.maximum(power.sum(axis=1, keepdims=True), 1e-9), dtype=np.float32)


def _alone(name: str) -> Callable[[Comparison, Matrix], Matrix]:
    return lambda comparison, _: comparison.near[name]


def _fused(comparison: Comparison, _: Matrix) -> Matrix:
    def part(near: Matrix) -> Matrix:
        far = np.where(comparison.good, -near, np.inf)
        nearest = np.argsort(far, axis=1)
        far = np.take_along_axis(far, nearest, axis=1)
        rank = np.tile(np.arange(far.shape[1]), (len(far), 1))
        rank[:, 1:][far[:, 1:] == far[:, :-1]] = 0  # equal ones share the first one's rank
        ranks = np.empty(far.shape)
        np.put_along_axis(ranks, nearest, np.maximum.accumulate(rank, axis=1), axis=1)
        return np.asarray(1 / (RRF_K + 1 + ranks), dtype=np.float32)

    return part(comparison.near["rare"]) + part(comparison.near["meaning"])


def _vote(comparison: Comparison, mixed: Matrix) -> Matrix:
    weight = comparison.trust * comparison.record
    agreed = softmax(mixed + np.log(weight), comparison.good) @ comparison.agreement.T
    best = np.where(comparison.good, mixed, NEVER).max(axis=1, keepdims=True, initial=NEVER)
    return np.asarray((DOUBT + agreed) * np.exp(LEAN * np.minimum(mixed - best, 0)), dtype=np.float32)


def _outcomes(comparison: Comparison, mixed: Matrix) -> Matrix:
    neighbours = softmax(mixed + np.log(comparison.trust), comparison.good | comparison.failed)
    neighbours = neighbours * FORGETS**comparison.newer
    same = (comparison.agreement >= SAME).astype(np.float32)
    worked = DOUBT + (neighbours * comparison.good) @ same
    blamed = BLAME * (neighbours * comparison.failed) @ same
    return np.asarray(_vote(comparison, mixed) * (worked / (worked + blamed)), dtype=np.float32)


ORDERS: dict[str, Callable[[Comparison, Matrix], Matrix]] = {
    "words": _alone("words"),
    "rare": _alone("rare"),
    "meaning": _alone("meaning"),
    "fused": _fused,
    "telling": _alone("telling"),
    "mixture": lambda _, mixed: mixed,
    "vote": _vote,
    "outcomes": _outcomes,
}
"""Function of each order, by its name, that returns the runs' scores, (m, n), from the comparison and its mixture.

The simplest order comes first."""


def learned_weights(comparison: Comparison, weight: NDArray[np.float32]) -> NDArray[np.float32]:
    """Returns the mixture's weights, (4,), that maximise the expected agreement of queries with their neighbours.

    ``weight`` is that of each query, (m,); a query of weight 0, such as a failed run, does not count.
    """
    questions = comparison.good.any(axis=1) & (weight > 0)
    near = np.stack([comparison.near[name][questions] for name in MIXED])  # (4, m, n)
    good, agreement, trust = comparison.good[questions], comparison.agreement[questions], np.log(comparison.trust)
    counts = (weight[questions] * AGED ** np.arange(len(good) - 1, -1, -1, dtype=np.float32))[:, None]
    logs = np.zeros(len(MIXED), dtype=np.float32)
    slope, square = np.zeros_like(logs), np.zeros_like(logs)
    for _ in range(STEPS):  # Adam (Kingma & Ba 2015), without its correction of the first steps
        weights = START * np.exp(logs)
        share = softmax(np.tensordot(weights, near, 1) + trust, good)
        surplus = counts * share * (agreement - (share * agreement).sum(axis=1, keepdims=True))
        uphill = weights * np.einsum("cmn,mn->c", near, surplus) - PULL * logs
        slope, square = 0.8 * slope + 0.2 * uphill, 0.9 * square + 0.1 * uphill**2
        logs = np.clip(logs + STEP * slope / np.sqrt(square + 1e-6), -4, 3)
    return np.asarray(START * np.exp(logs), dtype=np.float32)
