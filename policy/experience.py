"""Outcomes of similar decisions: kernel-weighted success of plans on similar past states.

A past decision speaks for the plans that it used when it was rewarded, and against them when it was not, the louder the
nearer its query lies to this one. Only decisions rewarded before this one are given, so nothing leaks from a reward
into the decision that earned it.

Source: kernel regression (Nadaraya 1964; Watson 1964), on states as the kernel case-based rule of Memento has it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policy.evidence import TINY, Cases, Matrix, Vector, agreement, near_of

RECORD = (
    "near_count",  # uses of the case itself on near states, each by its credit and how near it was
    "near_reward",  # sum of what these earned
)
"""Record of the case on queries like this one; its outcomes on others do not count here."""
NAMES = (
    "past_vote",  # -1 to 1: near candidates of the same plan, and past decisions for and against it
    "past_vote_wide",  # the same with a wider kernel
    "past_odds",  # log odds of success of the plan on near states
    "past_odds_wide",
    "past_mass",  # log(1 + weight of the past decisions that used the plan)
    "past_odds_case",  # log odds of success of the case itself on near states
    *RECORD,
)

NEAR, WIDE = 16.0, 8.0
"""Powers of the similarity, relative to the most similar candidate's."""
FEW = 0.2
"""Successes and failures that every plan begins with, in the odds."""
LEAST_MASS = 0.05


@dataclass(frozen=True, slots=True)
class ReuseHistory:
    """The m uses of a case on the states nearest to this one, by place of the slate.

    Attributes:
        similarity: (m,), cosine of that query and this one, -1 to 1.
        reward: (m,), 0 to 1.
        credit: (m,), the use's share of the outcome, 0 to 1.
        effects: (m, t), the plan of the case used, in the columns of the candidates' plans.
        candidate: (m,), the place of the case used among the candidates; -1: it is not one of them.
    """

    similarity: Vector
    reward: Vector
    credit: Vector
    effects: Matrix
    candidate: NDArray[np.int64]


def no_history(tools: int) -> ReuseHistory:
    """Returns the history of a profile that was never rewarded."""
    none = np.zeros(0)
    return ReuseHistory(none, none, none, np.zeros((0, tools)), np.zeros(0, np.int64))


def features(candidates: Cases, history: ReuseHistory) -> NDArray[np.float32]:
    """Returns the outcomes of similar decisions for each candidate, (n, len(NAMES)), always finite."""
    near, past = near_of(candidates.similarity), near_of(history.similarity)
    top = max(near.max(initial=0.0), TINY)
    near, past = near / top, np.minimum(past / top, 1)
    plans = candidates.agreement.copy()
    np.fill_diagonal(plans, 0)  # what it says itself is no vote
    used = agreement(candidates.effects, history.effects)  # (n, m)
    columns: dict[str, Vector] = {}
    for name, power in (("", NEAR), ("_wide", WIDE)):
        mates, weight = near**power, past**power * history.credit
        outcomes = np.array([weight * history.reward, weight * (1 - history.reward)])  # (2, m)
        won, lost = outcomes @ used.T
        votes = plans @ mates + won - lost
        columns["past_vote" + name] = votes / (np.maximum(mates.sum() - mates, 0) + LEAST_MASS + weight.sum())
        columns["past_odds" + name] = _log_odds(won, lost)
        mine = history.candidate >= 0  # successes and failures of each candidate's own uses
        earned, missed = (
            np.bincount(history.candidate[mine], each[mine], minlength=len(near)).astype(np.float64)
            for each in outcomes
        )
        if power == NEAR:
            columns["past_mass"] = np.log1p(won + lost)
            columns["past_odds_case"] = _log_odds(earned, missed)
        else:
            columns["near_count"], columns["near_reward"] = earned + missed, earned
    return np.array([columns[name] for name in NAMES], dtype=np.float32).T


def _log_odds(won: Vector, lost: Vector) -> Vector:
    odds: Vector = np.log((won + FEW) / (lost + FEW))
    return odds
