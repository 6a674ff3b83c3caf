"""The nightly training: judges each trial, watches each serving policy, and trains new candidates from the logs.

Nothing is stored before a head is finished, so a training that is interrupted changes nothing. Where two trainers
store at the same time, one of them succeeds and the other stores nothing.
"""

import hashlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypedDict, cast

import numpy as np
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from policy import features
from policy.decide import CANDIDATE, SERVING, Policy
from policy.examples import Examples, split
from policy.gate import Contest, Verdict, judge
from policy.gate import Settings as GateSettings
from policy.held_out import held_out_log_loss
from policy.inputs import factory
from policy.network import Head
from policy.watch import watch
from policy.weights import WeightsError, pack
from retrieval.database.database import Database
from retrieval.errors import UserErased
from retrieval.ranking.policies import policy_of
from retrieval.schema import policies as stored
from retrieval.schema import profiles
from retrieval.telemetry import log as events
from writer.profiles import Profile, each_profile
from writer.training import lifecycle, shared_prior
from writer.training.decision_log import LoggedDecision, examples, logged, read, target
from writer.training.lifecycle import NewPolicy, PolicyRow
from writer.training.shared_prior import Start

Fit = Callable[[Sequence[Examples], Sequence[int], Head], list[Head]]
"""Trains a head for each set of examples, with its seed, from where it begins."""

TrainingOutcome = Literal[
    "candidate",
    "promote",
    "keep",
    "roll back",
    "insufficient evidence",
    "too few decisions",
    "rewards all equal",
    "nothing new",
    "worse than the default on held-out decisions",
    "diverged",
    "learning is off",
    "another trainer was first",
    "erased",
]

HELD_OUT = 0.2
CURVE = (0.25, 0.5, 1.0)
"""Shares of the earlier decisions at which the learning curve is measured."""
MOST_TRIAL = 4_000
"""Decisions after which a trial without a verdict ends."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What a profile must have before a candidate is trained.

    Attributes:
        decisions: rewarded ones, of this version of the features.
        fresh: of them, how many since the last training.
        half: decisions at which the learned part has half of its weight: the n0 of n / (n + n0).
        members: heads of the ensemble.
        hidden: units of the network; 0 is logistic regression.
    """

    decisions: int = 100
    fresh: int = 50
    half: float = 100.0
    members: int = 5
    hidden: int = 0


class CurvePoint(TypedDict):
    """One point of a learning curve: what a head gains in log loss, in nats, after so many decisions."""

    decisions: int
    log_loss_gain: float


@dataclass(frozen=True, slots=True)
class TrainingResult:
    """What became of one profile."""

    user_sub: str
    agent_key: str
    outcome: TrainingOutcome
    version: int | None = None
    decisions: int = 0
    verdict: Verdict | None = None
    metrics: Mapping[str, object] = field(default_factory=dict)

    @property
    def learning_curve(self) -> Sequence[CurvePoint]:
        """Returns the curve that is part of the metrics of a new policy; empty without one."""
        return cast("Sequence[CurvePoint]", self.metrics.get("learning_curve", ()))


@dataclass(frozen=True, slots=True, eq=False)
class _DueProfile:
    """A profile whose candidate is to be trained."""

    profile: Profile
    examples: Examples
    shares: bool
    """Whether its numbers may train the shared prior."""


async def learn(
    database: Database, fit: Fit, *, only: Profile | None = None, demand: Demand | None = None, seed: int = 0
) -> AsyncIterator[TrainingResult]:
    """Judges every trial, watches every serving policy, and trains candidates; yields each profile's result.

    Args:
        database: where the logs are.
        fit: trains many heads at once.
        only: this profile alone; None: every profile.
        demand: what a profile must have before a candidate is trained.
        seed: the same seed and logs give the same weights.

    Raises:
        DatabaseUnavailable: what was stored so far stays.
    """
    demand = demand or Demand()
    due: list[_DueProfile] = []
    async for profile in _profiles(database, only):
        try:
            found = await _judge_profile(database, profile, demand)
        except UserErased:
            found = TrainingResult(profile.user_sub, profile.agent_key, "erased")
        if isinstance(found, _DueProfile):
            due.append(found)
        else:
            yield found
    async for result in _train(database, due, fit, demand, seed):
        yield result


async def _profiles(database: Database, only: Profile | None) -> AsyncIterator[Profile]:
    if only is not None:
        yield only
        return
    async for profile in each_profile(database):
        yield profile


async def _judge_profile(database: Database, profile: Profile, demand: Demand) -> TrainingResult | _DueProfile:
    """Judges the trial and watches the serving policy; returns the result, or the profile if a candidate is due.

    Long computations run between two transactions, so that an erasure need not wait for them.
    """
    async with database.as_user(profile.user_sub, profile.seen_at) as connection:
        state = await _read(connection, profile)
    if not state.learns:
        return TrainingResult(profile.user_sub, profile.agent_key, "learning is off")
    transitions, ended = _transitions(state)
    if transitions:
        async with database.as_user(profile.user_sub, profile.seen_at) as connection:
            if not await _apply(connection, state, transitions):
                return TrainingResult(profile.user_sub, profile.agent_key, "another trainer was first")
    if ended is not None:
        return ended
    due = _DueProfile(profile, examples(state.log), shares=state.shares)
    return _why_not_due(due, state.log, state.trained_at(transitions), demand) or due


@dataclass(frozen=True, slots=True, eq=False)
class _ProfileState:
    """A profile as a trainer read it: whether it learns and shares, its log, its live and its latest policies."""

    learns: bool
    shares: bool = False
    log: Sequence[LoggedDecision] = ()
    live: Sequence[PolicyRow] = ()
    latest: Sequence[tuple[int, datetime]] = ()
    """Version and time of the latest policies that have not failed, the newest first."""

    def trained_at(self, transitions: Sequence["_Transition"]) -> datetime | None:
        """Returns when the newest policy was made that has not failed and does not now; None: there is none."""
        failed = {transition.policy.version for transition in transitions if transition.status == "failed"}
        return next((created_at for version, created_at in self.latest if version not in failed), None)


@dataclass(frozen=True, slots=True, eq=False)
class _Transition:
    """A change of a live policy: columns to set on it, and its new status, if any."""

    policy: PolicyRow
    status: str | None
    columns: Mapping[str, Mapping[str, object]] = field(default_factory=dict)


async def _read(connection: AsyncConnection, profile: Profile) -> _ProfileState:
    user_sub, agent_key = profile.user_sub, profile.agent_key
    wants = select(profiles.c.learning, profiles.c.share_prior).where(
        profiles.c.user_sub == user_sub, profiles.c.agent_key == agent_key
    )
    row = (await connection.execute(wants)).one_or_none()
    if row is None or not row.learning:
        return _ProfileState(learns=False)
    log = await read(connection, user_sub, agent_key)
    newest = lifecycle.versions(user_sub, agent_key).where(stored.c.status != "failed").limit(1 + len(lifecycle.LIVE))
    latest = [(row.version, row.created_at) for row in await connection.execute(newest)]
    # after those: what another trainer stores in between is then seen as a trial, not only as newer
    live = await lifecycle.live_policies(connection, user_sub, agent_key)
    return _ProfileState(learns=True, shares=row.share_prior, log=log, live=live, latest=latest)


async def _apply(connection: AsyncConnection, state: _ProfileState, transitions: Sequence[_Transition]) -> bool:
    """Applies the transitions unless the profile's live policies have changed since they were read; returns whether."""
    user_sub, agent_key = state.live[0].user_sub, state.live[0].agent_key
    now = await lifecycle.live_policies(connection, user_sub, agent_key, lock=True)
    if {(row.version, row.status) for row in now} != {(row.version, row.status) for row in state.live}:
        return False
    for transition in transitions:
        if transition.columns:
            await lifecycle.set_columns(connection, transition.policy, **transition.columns)
        if transition.status == "rolled_back":
            await lifecycle.roll_back(connection, user_sub, agent_key)
        elif transition.status is not None:
            await lifecycle.set_status(connection, transition.policy, transition.status)
    return True


def _transitions(state: _ProfileState) -> tuple[list[_Transition], TrainingResult | None]:
    """Returns the changes of the live policies, and the profile's result if no candidate is to be trained now."""
    transitions: list[_Transition] = []
    sound: dict[str, PolicyRow] = {}
    for row in state.live:
        if row.stands and _policy(row) is not None:
            sound[row.status] = row
            continue
        why = "its weights cannot be loaded" if row.stands else "its shared prior was erased"
        events.warning("policy.failed", version=row.version, why=why)
        transitions.append(_Transition(row, "failed"))  # it can no longer serve, and makes room for another
    found = _watched(sound.get(SERVING), state.log)
    if found is None and CANDIDATE in sound:
        found = _judged(sound, state.log)
    return ([*transitions, found[0]], found[1]) if found else (transitions, None)


def _watched(serving: PolicyRow | None, log: Sequence[LoggedDecision]) -> tuple[_Transition, TrainingResult] | None:
    """Returns the rollback of a serving policy whose live reward has fallen below what it was promoted on."""
    if serving is None or not serving.verdict:
        return None
    floor = Verdict.from_json(serving.verdict).estimates["candidate"].dr.low
    mine = [entry.reward for entry in log if entry.arm == SERVING and entry.version == f"q-{serving.version}"]
    live = watch(np.array(mine, dtype=np.float64), max(floor, 0.0))
    if not live.roll_back:
        return None
    why: dict[str, object] = {
        "live_reward": live.mean,
        "floor": live.floor,
        "decisions": live.decisions,
        "evidence": live.evidence,
    }
    events.warning("policy.rolled_back", version=serving.version, decisions=live.decisions)
    transition = _Transition(serving, "rolled_back", {"metrics": {**serving.metrics, "rolled_back": why}})
    return transition, TrainingResult(
        serving.user_sub, serving.agent_key, "roll back", serving.version, len(mine), metrics=why
    )


def _judged(sound: Mapping[str, PolicyRow], log: Sequence[LoggedDecision]) -> tuple[_Transition, TrainingResult]:
    """Returns what the gate says of the trial, by the decisions since it began."""
    row = sound[CANDIDATE]
    trial = [entry for entry in log if entry.at >= row.created_at]
    verdict = verdict_on(trial, _policy(row), _policy(sound.get(SERVING)))
    status = {"promote": "serving", "keep": "rejected", "roll back": "rolled_back"}.get(verdict.outcome)
    if status is None and sum(entry.rewarded for entry in trial) >= MOST_TRIAL:
        status = "rejected"
    result = TrainingResult(row.user_sub, row.agent_key, verdict.outcome, row.version, verdict.decisions, verdict)
    return _Transition(row, status, {"verdict": verdict.as_json()}), result


def _why_not_due(
    due: _DueProfile, log: Sequence[LoggedDecision], trained_at: datetime | None, demand: Demand
) -> TrainingResult | None:
    """Returns why there is no candidate to be trained of these examples; None if there is."""
    known = due.examples
    fresh = sum(entry.rewarded for entry in log if trained_at is None or entry.at > trained_at)
    why: TrainingOutcome | None = None
    if len(known) < demand.decisions:
        why = "too few decisions"
    elif len(np.unique(known.reward)) == 1:
        why = "rewards all equal"
    elif fresh < demand.fresh:
        why = "nothing new"
    return why and TrainingResult(due.profile.user_sub, due.profile.agent_key, why, decisions=len(known))


def verdict_on(
    trial: Sequence[LoggedDecision],
    candidate: Policy | None,
    serving: Policy | None,
    settings: GateSettings | None = None,
) -> Verdict:
    """Returns the gate's verdict on a candidate by the decisions of its trial."""
    default = target(trial, None)
    contest = Contest(target(trial, candidate), default if serving is None else target(trial, serving), default)
    return judge(logged(trial), contest, settings)


def _policy(row: PolicyRow | None) -> Policy | None:
    if row is None:
        return None
    try:
        return policy_of(row)
    except WeightsError:
        return None  # what cannot be loaded does not serve either


async def _train(
    database: Database, due: Sequence[_DueProfile], fit: Fit, demand: Demand, seed: int
) -> AsyncIterator[TrainingResult]:
    """Trains all at once: first on the earlier decisions, to be measured on the later, then on everything."""
    if not due:
        return
    start = await _start(database, due, fit, demand, seed)
    seeds = [_seed(each.profile, seed) for each in due]
    late = [split(each.examples.group, HELD_OUT) for each in due]
    earlier = [np.flatnonzero(~rows) for rows in late]
    curves: list[list[Head]] = []
    for share in CURVE:
        first = [each.examples.take(rows[: int(len(rows) * share)]) for each, rows in zip(due, earlier, strict=True)]
        curves.append(fit(first, seeds, start.head))
    heads = fit([each.examples for each in due], seeds, start.head)
    for each, rows, head, *curve in zip(due, late, heads, *curves, strict=True):
        count = len(each.examples)
        if not all(trained.is_finite for trained in (head, *curve)):
            yield TrainingResult(each.profile.user_sub, each.profile.agent_key, "diverged", decisions=count)
            continue
        blend = count / (count + demand.half)
        measured = [held_out_log_loss(each.examples.take(rows), trained, blend) for trained in curve]
        known = int((~rows).sum())
        points = [(int(known * share), at.log_loss_gain) for share, at in zip(CURVE, measured, strict=True)]
        whole, curve_points = measured[-1], [{"decisions": n, "log_loss_gain": gain} for n, gain in points]
        metrics = {**whole.as_json(), "learning_curve": curve_points}
        worse = whole.log_loss_gain < -2 * whole.log_loss_gain_error
        blob, checksum = pack(head, features.VERSION)
        status = "rejected" if worse else "candidate"
        new = NewPolicy(status, features.VERSION, blob, checksum, blend, count, metrics, start.version)
        yield await _store(database, each.profile, new)


async def _start(database: Database, due: Sequence[_DueProfile], fit: Fit, demand: Demand, seed: int) -> Start:
    """Returns where heads begin: a prior of those who share their numbers now, else the last, else the factory's."""
    users: dict[str, list[Examples]] = {}
    for each in due:
        if each.shares:
            users.setdefault(each.profile.user_sub, []).append(each.examples)
    begin = factory(demand.members, demand.hidden)
    together = shared_prior.pool(users)
    if together is not None:
        (head,) = fit([together], [seed], begin)
        contributors = {each.profile.user_sub: each.profile.seen_at for each in due if each.shares}
        with suppress(UserErased, IntegrityError):  # a contributor was erased, or another trainer was first
            async with database.as_worker(contributors) as connection:
                return await shared_prior.store(connection, head, list(contributors), len(together))
    async with database.as_worker() as connection:
        return await shared_prior.latest(connection) or Start(begin)


async def _store(database: Database, profile: Profile, new: NewPolicy) -> TrainingResult:
    user_sub, agent_key = profile.user_sub, profile.agent_key
    try:
        async with database.as_user(user_sub, profile.seen_at) as connection:
            version = await lifecycle.add(connection, user_sub, agent_key, new)
    except UserErased:
        return TrainingResult(user_sub, agent_key, "erased")
    except IntegrityError:
        return TrainingResult(user_sub, agent_key, "another trainer was first")
    outcome: TrainingOutcome = (
        "candidate" if new.status == "candidate" else "worse than the default on held-out decisions"
    )
    return TrainingResult(user_sub, agent_key, outcome, version, new.decisions, metrics=dict(new.metrics))


def _seed(profile: Profile, seed: int) -> int:
    """Returns a seed of the profile's own, so that no other profile's number changes its weights."""
    digest = f"{seed}\n{profile.user_sub}\n{profile.agent_key}".encode()
    return int.from_bytes(hashlib.sha256(digest).digest()[:6], "big")
