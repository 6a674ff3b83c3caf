"""Deciding: which slate is served, by whose order, and with what chance; and what every term of a score was."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policy.explore import Lottery, explored, mixture, unless_empty
from policy.features import Features
from policy.inputs import Inputs, inputs_of
from policy.network import Head
from policy.slate import Field, Slate, choose, order

DEFAULT, SERVING, CANDIDATE = "default", "serving", "candidate"
LARGEST_LOG_ODDS = 30.0
"""Log odds beyond which a promise is as good as certain."""


@dataclass(frozen=True, slots=True, eq=False)
class Policy:
    """A learned policy: its head, and the weight that its evidence gives it, 0 to 1."""

    version: str
    head: Head
    blend: float


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """What a policy thinks of n candidates; log odds up to a constant of the query, but for ``q``.

    Attributes:
        total: (n,), what it orders by: prior + blend * residual.
        prior: (n,), the default's part.
        residual: (n,), the learned part, the mean of the ensemble.
        spread: (n,), standard deviation of the ensemble.
        q: (n,), 0 to 1, the reward expected of a slate of this case alone; None of the default, which promises none.
    """

    total: NDArray[np.float32]
    prior: NDArray[np.float32]
    residual: NDArray[np.float32]
    spread: NDArray[np.float32]
    q: NDArray[np.float32] | None
    gain: NDArray[np.float32] | None = None
    """(M, n), log odds of a reward of this case alone over those of an empty slate, by member; None of the default."""


@dataclass(frozen=True, slots=True)
class Budget:
    """How much is tried out, as shares of all decisions.

    Attributes:
        explore: slates with a drawn place.
        canary: decisions that follow the policy on trial.
        kept: decisions that stay with the default when another policy serves, for without them nobody could tell
            that it got worse; during a trial half as many as the trial has, if that is more.
    """

    explore: float = 0.05
    canary: float = 0.25
    kept: float = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """Who may decide, how much is tried out, and by what luck.

    Attributes:
        arms: each live arm's policy: DEFAULT's is None, always there; SERVING's and CANDIDATE's where there is one.
        budget: shares of all decisions.
        seed: 0 or above; the same one draws the same.
    """

    arms: Mapping[str, Policy | None]
    budget: Budget
    seed: int


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """A slate, the arm that gave it, and the chances under which it was drawn."""

    slate: Slate
    arm: str
    scores: Scores
    lottery: Lottery
    slates: Mapping[str, Slate]
    """What each arm would have served, had nothing been drawn."""
    allowed: bool
    """Whether there was anything to serve: if so, an empty slate was chosen, or drawn."""


def score(policy: Policy | None, features: Features) -> Scores:
    """Returns the scores of a policy; None is the untrained default."""
    return _score(policy, inputs_of(features))


def _score(policy: Policy | None, seen: Inputs) -> Scores:
    base = seen.prior
    nothing = np.zeros_like(base)
    if policy is None or not len(base):
        return Scores(base, base, nothing, nothing, None)
    parts = policy.head.case_part(seen.case)  # (M, n)
    residual = parts.mean(axis=0)
    total = (base + policy.blend * residual).astype(np.float32)
    shown = policy.head.shown(base + parts)
    odds = (policy.head.query_part(seen.query) + shown).mean(axis=0)
    q = 1 / (1 + np.exp(-np.clip(odds, -LARGEST_LOG_ODDS, LARGEST_LOG_ODDS)))
    gain = shown - policy.head.null[:, None]
    return Scores(total, base, residual, parts.std(axis=0), q.astype(np.float32), gain)


def preferred(scores: Scores, slate: Slate) -> Slate:
    """Returns the slate, or an empty one where the whole ensemble expects more of that.

    The whole: the mean gain of the slate's places lies more than the members' spread below zero.
    """
    if scores.gain is None or not slate:
        return slate
    gain = scores.gain[:, list(slate)].mean(axis=1)  # (M,)
    return () if gain.mean() + gain.std() < 0 else slate


def decide(features: Features, field: Field, k: int, trial: Trial) -> Decision:
    """Returns the decision; the same arguments give the same one.

    The arm is drawn by its share, the slate from the arm's own lottery, and the chances are those of both together.
    """
    arms, budget, seen = trial.arms, trial.budget, inputs_of(features)
    scores = {arm: _score(policy, seen) for arm, policy in arms.items()}
    orders = {arm: order(field, scored.total) for arm, scored in scores.items()}
    ranked = {arm: choose(field, orders[arm], k) for arm in arms}
    slates = {arm: preferred(scores[arm], ranked[arm]) for arm in arms}
    lotteries = {
        arm: explored(field, scores[arm].total, orders[arm], slates[arm], budget.explore)
        if slates[arm]
        else unless_empty(ranked[arm], budget.explore)
        for arm in arms
    }
    shared = shares(arms, budget)
    rng = np.random.default_rng(trial.seed)
    arm = list(shared)[rng.choice(len(shared), p=list(shared.values()))]
    whole = mixture(list(shared.values()), [lotteries[name] for name in shared])
    return Decision(lotteries[arm].draw(rng), arm, scores[arm], whole, slates, allowed=bool(orders[arm]))


def shares(arms: Collection[str], budget: Budget) -> dict[str, float]:
    """Returns the share of decisions that follow each arm; they sum to 1."""
    trial = budget.canary if CANDIDATE in arms else 0.0
    kept = min(max(budget.kept, trial / 2), 1 - trial) if SERVING in arms else 1 - trial
    found = {DEFAULT: kept, SERVING: 1 - trial - kept, CANDIDATE: trial}
    return {arm: found[arm] for arm in arms}
