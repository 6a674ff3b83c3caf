"""Decides the slate to serve, the policy that orders it, and its propensity, with every term of a score."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policy.explore import Lottery, explored, mixture, unless_empty
from policy.features import Features
from policy.inputs import Inputs
from policy.network import Head
from policy.slate import Field, Slate, choose, order

DEFAULT, SERVING, CANDIDATE = "default", "serving", "candidate"
REPLAYED = "replay-1"
"""Version of the policy without a network: the order that replay chose serves."""
EVEN = 0.5
"""Share of decisions that tells two policies apart soonest."""
LARGEST_LOG_ODDS = 30.0
"""Largest log odds of a prediction."""


@dataclass(frozen=True, slots=True, eq=False)
class Policy:
    """A learned policy.

    Attributes:
        head: learned weights.
        blend: weight of the learned part, 0 to 1.
        differs: share of decisions on which it would serve another slate than is served without it, above 0 to 1;
            1 if not counted.
    """

    version: str
    head: Head
    blend: float
    differs: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """A policy's scores of n candidates; log odds up to a constant of the query, except ``q``.

    Attributes:
        total: (n,), sort key: prior + blend * residual.
        prior: (n,), the default's part.
        residual: (n,), the learned part, the mean of the ensemble.
        spread: (n,), standard deviation of the ensemble.
        q: (n,), 0 to 1, the reward expected of a slate of this case alone; None for the default, which predicts none.
    """

    total: NDArray[np.float32]
    prior: NDArray[np.float32]
    residual: NDArray[np.float32]
    spread: NDArray[np.float32]
    q: NDArray[np.float32] | None
    gain: NDArray[np.float32] | None = None
    """(M, n), log odds of a reward of this case alone over those of an empty slate, by member.

    None for the default, and for a head without a value of the empty slate."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Shares of all decisions that are tried out.

    Attributes:
        explore: slates with a drawn place.
        canary: decisions that get another slate because a policy is on trial; decisions on which it agrees with the
            serving one do not count.
        kept: decisions that stay with the default when another policy serves, without which a decline could not be
            measured; during a trial half as many as get another slate by it, if that is more.
    """

    explore: float = 0.05
    canary: float = 0.25
    kept: float = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """The live policies, the shares that are tried out, and the seed of the lots.

    Attributes:
        arms: each live arm's policy: DEFAULT's is None, always there; SERVING's and CANDIDATE's where there is one.
        budget: shares of all decisions.
        seed: at least 0; the same seed draws the same.
    """

    arms: Mapping[str, Policy | None]
    budget: Budget
    seed: int


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """A slate, its arm, and the chances under which it was drawn."""

    slate: Slate
    arm: str
    scores: Scores
    lottery: Lottery
    slates: Mapping[str, Slate]
    """Slate of each arm without a draw."""
    allowed: bool
    """True if a candidate could be served; then an empty slate was chosen, or drawn."""


def score(policy: Policy | None, features: Features) -> Scores:
    """Returns the scores of a policy; None is the untrained default."""
    return score_inputs(policy, Inputs(features))


def score_inputs(policy: Policy | None, seen: Inputs) -> Scores:
    """Returns the scores by inputs that were computed before, for several policies score the same candidates."""
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
    gain = shown - policy.head.null[:, None] if policy.head.values_empty else None
    return Scores(total, base, residual, parts.std(axis=0), q.astype(np.float32), gain)


def preferred(scores: Scores, slate: Slate) -> Slate:
    """Returns the slate, or an empty one if the whole ensemble expects more of that."""
    return () if _gained(scores, slate) < 0 else slate


def _gained(scores: Scores, slate: Slate) -> float:
    """Returns the ensemble's expectation of a slate over an empty one, in log odds; 0 if its members disagree.

    They agree if the mean gain of the slate's places lies farther from zero than the members' spread.
    """
    if scores.gain is None or not slate:
        return 0.0
    gain = scores.gain[:, list(slate)].mean(axis=1)  # (M,)
    return float(gain.mean()) if abs(gain.mean()) > gain.std() else 0.0


def decide(features: Features, field: Field, k: int, trial: Trial) -> Decision:
    """Returns the decision; the same arguments give the same one.

    The arm is drawn by its share, the slate from the arm's own lottery, and the chances are those of both together.
    """
    seen = Inputs(features)
    wishes = {arm: _wish(field, score_inputs(policy, seen), k) for arm, policy in trial.arms.items()}
    lotteries = [_lottery(field, wish, trial.budget.explore) for wish in wishes.values()]
    shared = shares(trial.arms, trial.budget)
    rng = np.random.default_rng(trial.seed)
    drawn = rng.choice(len(shared), p=list(shared.values()))
    arm = list(shared)[drawn]
    return Decision(
        slate=lotteries[drawn].draw(rng),
        arm=arm,
        scores=wishes[arm].scores,
        lottery=mixture(list(shared.values()), lotteries),
        slates={name: wish.slate for name, wish in wishes.items()},
        allowed=bool(wishes[arm].ordered),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Wish:
    """An arm's slate without a draw: ``full`` is the slate if it is not to be empty."""

    scores: Scores
    ordered: list[int]
    full: Slate
    slate: Slate


def _wish(field: Field, scores: Scores, k: int) -> _Wish:
    ordered = order(field, scores.total)
    full = choose(field, ordered, k)
    return _Wish(scores, ordered, full, preferred(scores, full))


def _lottery(field: Field, wish: _Wish, budget: float) -> Lottery:
    """Returns an arm's slates and their chances, with the explored part."""
    if not wish.slate:
        return unless_empty(wish.full, budget)
    return explored(field, wish.scores.total, wish.ordered, wish.slate, budget)


def shares(arms: Mapping[str, Policy | None], budget: Budget) -> dict[str, float]:
    """Returns the share of decisions that follow each arm; they sum to 1."""
    on_trial = arms.get(CANDIDATE)
    trial = 0.0 if on_trial is None else trial_share(budget.canary, on_trial.differs)
    others = 0.0 if on_trial is None else trial * on_trial.differs
    kept = min(max(budget.kept, others / 2), 1 - trial) if SERVING in arms else 1 - trial
    share = {DEFAULT: kept, SERVING: 1 - trial - kept, CANDIDATE: trial}
    return {arm: share[arm] for arm in arms}


def trial_share(canary: float, differs: float) -> float:
    """Returns the share of decisions that follow a policy on trial, which differs on ``differs`` of them.

    By it, the canary's share of all decisions gets another slate, at most half of those on which the two differ:
    no lot tells two policies apart sooner (Neyman 1934).
    """
    return max(canary, min(EVEN, canary / differs))
