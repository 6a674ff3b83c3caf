"""Turns the log of decisions into arrays: examples for training, and the data by which the gate judges policies."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from policy.decide import LARGEST_LOG_ODDS, Policy, score
from policy.examples import Examples, importance, shared_credit
from policy.inputs import CASE, QUERY, Inputs
from policy.logged import Logged, Target
from policy.slate import Slate, choose, ranking
from writer.training.decision_log import LoggedDecision


def examples(log: Sequence[LoggedDecision]) -> Examples:
    """Returns the rewarded decisions of a log as examples for training."""
    known = [entry for entry in log if entry.rewarded]
    places = max([len(entry.slate) for entry in known], default=1) or 1
    count = len(known)
    seen = [entry.inputs for entry in known]
    case = np.zeros((count, places, len(CASE)), np.float32)
    odds = np.zeros((count, places), np.float32)
    filled, used, agreed = (np.zeros((count, places), kind) for kind in (bool, bool, np.float32))
    for row, entry in enumerate(known):
        if chosen := list(entry.slate):
            case[row, : len(chosen)] = seen[row].case[chosen]
            odds[row, : len(chosen)] = seen[row].prior[chosen]
            filled[row, : len(chosen)] = True
            used[row, : len(chosen)], agreed[row, : len(chosen)] = entry.used, entry.agreed
    return Examples(
        inputs=case,
        prior=odds,
        credit=shared_credit(filled, used, np.array([entry.usage_known for entry in known], dtype=bool), agreed),
        query=_queries(seen),
        reward=np.array([entry.reward for entry in known], dtype=np.float32),
        weight=importance(np.array([entry.propensity for entry in known], dtype=np.float64)),
        group=np.array([entry.group for entry in known], dtype=np.int64),
    )


def _queries(seen: Sequence[Inputs]) -> NDArray[np.float32]:
    return np.concatenate([each.query for each in seen]) if seen else np.zeros((0, len(QUERY)), np.float32)


def logged(log: Sequence[LoggedDecision]) -> Logged:
    """Returns the decisions of a log as the gate reads them, in two segments by the nearest task's similarity."""
    queries = _queries([entry.inputs for entry in log]).astype(np.float64)
    known = queries[:, QUERY.index("top_similarity")]
    return Logged(
        reward=np.array([entry.reward for entry in log], dtype=np.float64),
        logged_propensity=np.array([entry.propensity for entry in log], dtype=np.float64),
        group=np.array([entry.group for entry in log], dtype=np.int64),
        segment=(known > (np.median(known) if len(known) else 0)).astype(np.int64),
        covariates=queries,
    )


def target(log: Sequence[LoggedDecision], policy: Policy | None) -> Target:
    """Returns whether a policy (None: the default) would have served each slate, and its predicted reward."""
    chance, predicted = [], []
    for entry in log:
        chance.append(float(slate_of(policy, entry) == entry.slate))
        if policy is None:
            predicted.append(float("nan"))
            continue
        seen, chosen = entry.inputs, list(entry.slate)
        parts = policy.head.case_part(seen.case[chosen]) + seen.prior[chosen]  # (M, places)
        slate = parts.mean(axis=1, keepdims=True) if chosen else np.zeros(1, np.float32)
        odds = policy.head.log_odds(seen.query, slate).mean()
        predicted.append(float(1 / (1 + np.exp(-np.clip(odds, -LARGEST_LOG_ODDS, LARGEST_LOG_ODDS)))))
    return Target(np.array(chance, dtype=np.float64), predicted=np.array(predicted, dtype=np.float64))


def slate_of(policy: Policy | None, entry: LoggedDecision) -> Slate:
    """Returns the slate that a policy would have served at a logged decision, without random choice."""
    scores = score(policy, entry.inputs)
    return choose(entry.traits, ranking(entry.traits, scores.total), entry.k)


def differing(log: Sequence[LoggedDecision], policy: Policy, other: Policy | None) -> float:
    """Returns the share of a log's decisions at which two policies would serve different slates; 1 for an empty log."""
    counted = [slate_of(policy, entry) != slate_of(other, entry) for entry in log]
    return sum(counted) / len(counted) if counted else 1.0
