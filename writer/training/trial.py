"""Judges policies by the log of decisions: the gate's verdict on a trial, and the watch over the policy in service."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import numpy as np

from policy.decide import CANDIDATE, SERVING, Policy
from policy.gate import Contest, judge
from policy.verdict import ENDED, GateOutcome
from policy.watch import BEGIN, watch
from policy.weights import WeightsError
from retrieval.ranking.policies import name_of, policy_of
from retrieval.telemetry import log as events
from writer.training.decision_log import MOST_DECISIONS, LoggedDecision
from writer.training.lifecycle import PolicyRow
from writer.training.result import TrainingResult
from writer.training.training_data import logged, slate_of, target

ENDS: Mapping[GateOutcome, str] = {
    "promote": "serving",
    "keep": "rejected",
    "futile": "rejected",
    "roll back": "rolled_back",
}
"""New status of a candidate by the gate's verdict; without enough evidence its trial goes on."""


@dataclass(frozen=True, slots=True, eq=False)
class Transition:
    """A change of a policy on trial or in service: columns to set, and its new status; None: the status stays."""

    policy: PolicyRow
    status: str | None
    columns: Mapping[str, Mapping[str, object]] = field(default_factory=dict)


def transitions_of(
    live: Sequence[PolicyRow], log: Sequence[LoggedDecision]
) -> tuple[list[Transition], TrainingResult | None]:
    """Returns the changes of a profile's policies, and the night's result; None: a candidate may be trained now."""
    transitions: list[Transition] = []
    sound: dict[str, tuple[PolicyRow, Policy]] = {}
    for row in live:
        if (policy := policy_in(row)) is not None:
            sound[row.status] = row, policy
            continue
        events.warning("policy.failed", version=row.version, why="its weights cannot be loaded")
        transitions.append(Transition(row, "failed"))  # it can no longer serve, and makes room for another
    result = None
    if SERVING in sound and (watched := _watched(*sound[SERVING], log)) is not None:
        transition, result = watched
        transitions.append(transition)
    if result is None and CANDIDATE in sound:
        transition, result = _judged(sound, log)
        transitions.append(transition)
    return transitions, result


def _watched(
    serving: PolicyRow, policy: Policy, log: Sequence[LoggedDecision]
) -> tuple[Transition, TrainingResult | None] | None:
    """Returns the verdict of the rewards since the last watch on the serving policy; None: no policy is watched.

    The policy is rolled back if its live reward has fallen below what it was promoted on, the lower bound of its
    estimate then; a policy that no gate judged has none. The bets go on from the wealth in the policy's metrics, for
    the log does not reach back to its promotion. Slates drawn at random are not the policy's, and do not count.
    """
    verdict: Any = serving.verdict or {}
    promoted_on = verdict.get("estimates", {}).get("candidate")  # of any version's verdict
    if promoted_on is None:
        return None
    before: Any = serving.metrics.get("watch", {"wealth": BEGIN, "decisions": 0, "mean": 0.0})
    until = datetime.fromisoformat(before["until"]) if "until" in before else None
    name = name_of(serving.version)
    mine = [
        entry
        for entry in sorted(log, key=lambda entry: entry.rewarded_at)
        if entry.arm == SERVING and entry.version == name and entry.rewarded
        if (until is None or entry.rewarded_at > until) and entry.slate == slate_of(policy, entry)
    ]
    if not mine:
        return None
    floor = max(promoted_on["low"], 0.0)
    rewards = np.array([entry.reward for entry in mine], np.float64)
    live = watch(rewards, floor, before["wealth"])
    decisions = before["decisions"] + len(mine)
    mean = (before["mean"] * before["decisions"] + float(rewards.sum())) / decisions
    now = {"wealth": live.wealth, "decisions": decisions, "mean": mean, "until": mine[-1].rewarded_at.isoformat()}
    if not live.roll_back:
        return Transition(serving, None, {"metrics": {**serving.metrics, "watch": now}}), None
    events.warning("policy.rolled_back", version=serving.version, decisions=decisions)
    why = {"live_reward": mean, "floor": floor, "decisions": decisions, "evidence": live.evidence}
    transition = Transition(serving, "rolled_back", {"metrics": {**serving.metrics, "rolled_back": why}})
    result = TrainingResult(serving.user_sub, serving.agent_key, "roll back", serving.version, decisions, metrics=why)
    return transition, result


def _judged(
    sound: Mapping[str, tuple[PolicyRow, Policy]], log: Sequence[LoggedDecision]
) -> tuple[Transition, TrainingResult]:
    """Returns the gate's verdict on the trial, from the decisions since the trial began."""
    row, candidate = sound[CANDIDATE]
    trial = sorted((entry for entry in log if entry.at >= row.created_at), key=lambda entry: entry.rewarded_at)
    default = target(trial, None)
    serving = target(trial, sound[SERVING][1]) if SERVING in sound else default
    verdict = judge(logged(trial), Contest(target(trial, candidate), serving, default))
    if verdict.outcome == "insufficient evidence" and len(trial) >= MOST_DECISIONS:
        # the log reaches no farther back: its looks could not be taken again
        verdict = replace(verdict, outcome="keep", outlook=ENDED)
    result = TrainingResult(row.user_sub, row.agent_key, verdict.outcome, row.version, verdict.decisions, verdict)
    return Transition(row, ENDS.get(verdict.outcome), {"verdict": verdict.as_json()}), result


def policy_in(row: PolicyRow | None) -> Policy | None:
    """Returns the policy in a row; None: there is no row, or its weights cannot be loaded."""
    if row is None:
        return None
    try:
        return policy_of(row)
    except WeightsError:
        return None  # what cannot be loaded does not serve either
