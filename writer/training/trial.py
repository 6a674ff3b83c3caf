"""Judges policies by the log of decisions: the gate's verdict on a trial, and the watch over the policy in service."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from policy.decide import CANDIDATE, SERVING, Policy
from policy.gate import Contest, judge
from policy.verdict import GateOutcome, Verdict
from policy.watch import watch
from policy.weights import WeightsError
from retrieval.ranking.policies import name_of, policy_of
from retrieval.telemetry import log as events
from writer.training.decision_log import MOST_DECISIONS, LoggedDecision
from writer.training.lifecycle import PolicyRow
from writer.training.result import TrainingResult
from writer.training.training_data import logged, target

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
    sound: dict[str, PolicyRow] = {}
    for row in live:
        if policy_in(row) is not None:
            sound[row.status] = row
            continue
        events.warning("policy.failed", version=row.version, why="its weights cannot be loaded")
        transitions.append(Transition(row, "failed"))  # it can no longer serve, and makes room for another
    found = _watched(sound.get(SERVING), log)
    if found is None and CANDIDATE in sound:
        found = _judged(sound, log)
    return ([*transitions, found[0]], found[1]) if found else (transitions, None)


def _watched(serving: PolicyRow | None, log: Sequence[LoggedDecision]) -> tuple[Transition, TrainingResult] | None:
    """Returns the rollback of a serving policy whose live reward has fallen below what it was promoted on.

    The floor is the lower bound of the estimate that promoted it; a policy that no gate judged has none.
    """
    if serving is None or not serving.verdict:
        return None
    name = name_of(serving.version)
    mine = np.array([entry.reward for entry in log if entry.arm == SERVING and entry.version == name], np.float64)
    floor = Verdict.from_json(serving.verdict).estimates["candidate"].low
    live = watch(mine, max(floor, 0.0))
    if not live.roll_back:
        return None
    events.warning("policy.rolled_back", version=serving.version, decisions=live.decisions)
    why = {"live_reward": live.mean, "floor": max(floor, 0.0), "decisions": live.decisions, "evidence": live.evidence}
    transition = Transition(serving, "rolled_back", {"metrics": {**serving.metrics, "rolled_back": why}})
    return transition, TrainingResult(
        serving.user_sub, serving.agent_key, "roll back", serving.version, len(mine), metrics=why
    )


def _judged(sound: Mapping[str, PolicyRow], log: Sequence[LoggedDecision]) -> tuple[Transition, TrainingResult]:
    """Returns the gate's verdict on the trial, from the decisions since the trial began."""
    row = sound[CANDIDATE]
    trial = [entry for entry in log if entry.at >= row.created_at]
    default = target(trial, None)
    candidate, serving = (
        default if policy is None else target(trial, policy)
        for policy in (policy_in(row), policy_in(sound.get(SERVING)))
    )
    verdict = judge(logged(trial), Contest(candidate, serving, default))
    status = ENDS.get(verdict.outcome)
    if verdict.decisions >= verdict.settings.spending.longest or len(trial) >= MOST_DECISIONS:
        status = status or "rejected"  # the log reaches no farther back: its looks could not be taken again
    result = TrainingResult(row.user_sub, row.agent_key, verdict.outcome, row.version, verdict.decisions, verdict)
    return Transition(row, status, {"verdict": verdict.as_json()}), result


def policy_in(row: PolicyRow | None) -> Policy | None:
    """Returns the policy in a row; None: there is no row, or its weights cannot be loaded."""
    if row is None:
        return None
    try:
        return policy_of(row)
    except WeightsError:
        return None  # what cannot be loaded does not serve either
