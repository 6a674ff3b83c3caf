"""Decides the slate to serve, the policy that orders it and the slate's propensity; returns each term of a score."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policy.explore import Lottery, compound, explored
from policy.features import Features
from policy.inputs import Inputs
from policy.network import Head
from policy.slate import Slate, Traits, choose, ranking

DEFAULT, SERVING, CANDIDATE = "default", "serving", "candidate"
REPLAYED = "replay-1"
"""Version name of the default policy, which has no network: it serves the order that replay chose."""
EVEN = 0.5
"""Share of decisions to give one of two policies so that the fewest decisions tell the two apart."""
LARGEST_LOG_ODDS = 30.0
"""Largest log odds of a predicted reward; larger ones are clipped."""


@dataclass(frozen=True, slots=True, eq=False)
class Policy:
    """A learned policy.

    Attributes:
        blend: weight of the learned part in a score, 0 to 1.
        differs: share of decisions on which this policy would serve another slate than is served without it, above 0
            to 1; 1 if these decisions were not counted.
    """

    version: str
    head: Head
    blend: float
    differs: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """A policy's scores of n candidates. All but ``q`` are log odds of a reward, up to a constant for each query.

    Attributes:
        total: (n,), the score by which candidates are ordered: prior + blend * residual.
        prior: (n,), the untrained default's score.
        residual: (n,), the learned part of the score: the mean over the ensemble's members.
        spread: (n,), standard deviation of the learned part over the ensemble's members.
        q: (n,), 0 to 1, expected reward of a slate of this case alone; None for the default, which predicts no rewards.
    """

    total: NDArray[np.float32]
    prior: NDArray[np.float32]
    residual: NDArray[np.float32]
    spread: NDArray[np.float32]
    q: NDArray[np.float32] | None


@dataclass(frozen=True, slots=True)
class Budget:
    """Shares of all decisions that are spent on experiments; the first two are 0 unless a profile sets them.

    Attributes:
        explore: share of decisions with a place of the slate drawn at random.
        canary: share of decisions that get another slate because a policy is on trial; decisions on which that policy
            agrees with the serving one do not count.
        kept: share of decisions that stay with the default while another policy serves; without these a decline could
            not be measured. During a trial the share is at least half of that which gets another slate by the trial.
    """

    explore: float = 0.0
    canary: float = 0.0
    kept: float = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """The live policies, the shares of decisions that each gets, and the seed of a decision's random draws.

    Attributes:
        arms: policy of each live arm: of DEFAULT, which is always there, None; of SERVING and CANDIDATE, if there are
            any.
        seed: seed of the random draws, at least 0; the same seed gives the same draws.
    """

    arms: Mapping[str, Policy | None]
    budget: Budget
    seed: int


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """The slate chosen for one retrieval, the arm it is from, and the chances with which slates were drawn."""

    slate: Slate
    arm: str
    scores: Scores
    lottery: Lottery
    slates: Mapping[str, Slate]
    """Slate that each arm gives if no place is drawn at random."""
    allowed: bool
    """True if some candidate was allowed on the slate; an empty slate was then drawn."""


def score(policy: Policy | None, seen: Inputs) -> Scores:
    """Returns a policy's scores of the candidates; None is the untrained default. Policies can share the inputs."""
    base = seen.prior
    nothing = np.zeros_like(base)
    if policy is None or not len(base):
        return Scores(base, base, nothing, nothing, None)
    parts = policy.head.case_part(seen.case)  # (M, n)
    residual = parts.mean(axis=0)
    total = (base + policy.blend * residual).astype(np.float32)
    odds = policy.head.log_odds(seen.query, base + parts).mean(axis=0)
    q = 1 / (1 + np.exp(-np.clip(odds, -LARGEST_LOG_ODDS, LARGEST_LOG_ODDS)))
    return Scores(total, base, residual, parts.std(axis=0), q.astype(np.float32))


def decide(features: Features, traits: Traits, k: int, trial: Trial) -> Decision:
    """Returns the decision for a query's candidates; the same arguments give the same decision.

    The arm is drawn by the arms' shares, and the slate from that arm's lottery; the slate's propensity counts both
    draws.
    """
    seen = Inputs(features)
    scores = {arm: score(policy, seen) for arm, policy in trial.arms.items()}
    ordered = {arm: ranking(traits, each.total) for arm, each in scores.items()}
    slates = {arm: choose(traits, ordered[arm], k) for arm in scores}
    lotteries = [explored(traits, scores[arm].total, ordered[arm], slates[arm], trial.budget.explore) for arm in scores]
    shared = shares(trial.arms, trial.budget)
    rng = np.random.default_rng(trial.seed)
    drawn = rng.choice(len(shared), p=list(shared.values()))
    arm = list(shared)[drawn]
    return Decision(
        slate=lotteries[drawn].draw(rng),
        arm=arm,
        scores=scores[arm],
        lottery=compound(list(shared.values()), lotteries),
        slates=slates,
        allowed=bool(ordered[arm]),
    )


def shares(arms: Mapping[str, Policy | None], budget: Budget) -> dict[str, float]:
    """Returns the share of decisions that follow each arm; the shares sum to 1."""
    on_trial = arms.get(CANDIDATE)
    trial = 0.0 if on_trial is None else trial_share(budget.canary, on_trial.differs)
    others = 0.0 if on_trial is None else trial * on_trial.differs
    kept = min(max(budget.kept, others / 2), 1 - trial) if SERVING in arms else 1 - trial
    share = {DEFAULT: kept, SERVING: 1 - trial - kept, CANDIDATE: trial}
    return {arm: share[arm] for arm in arms}


def trial_share(canary: float, differs: float) -> float:
    """Returns the share of decisions that follow a policy on trial.

    The share is such that ``canary`` of all decisions get another slate by the trial. Above ``canary``, it is at most
    half of the decisions on which the two policies differ: no other division tells them apart sooner (Neyman 1934).

    Args:
        canary: share of all decisions that are to get another slate because of the trial.
        differs: share of decisions on which the policy on trial would serve another slate.
    """
    return max(canary, min(EVEN, canary / differs))
