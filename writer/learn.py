"""Learning: a profile's log becomes a candidate, a candidate on trial becomes a verdict, a verdict changes what serves.

Nothing is stored before a head is finished, so a training that is broken off leaves everything as it was; and what two
trainers store at once, one of them stores.
"""

import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from sqlalchemy import Row, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from policy import features
from policy.decide import CANDIDATE, SERVING, Policy
from policy.examples import Examples, split
from policy.foretell import foretold
from policy.gate import Contest, Verdict, judge
from policy.gate import Settings as GateSettings
from policy.inputs import factory
from policy.network import Head
from policy.watch import watch
from policy.weights import WeightsError, pack
from retrieval.database import Database
from retrieval.errors import UserErased
from retrieval.policies import policy_of
from retrieval.schema import policies as stored
from retrieval.schema import profiles
from retrieval.stages import log as events
from writer import prior, promote
from writer.logbook import Entry, examples, logged, read, target
from writer.prior import Start
from writer.profiles import Profile, each_profile
from writer.promote import Stored

Fit = Callable[[Sequence[Examples], Sequence[int], Head], list[Head]]
"""Trains a head for each set of examples, with its seed, from where it begins."""

Outcome = Literal[
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


@dataclass(frozen=True, slots=True)
class Learnt:
    """What became of one profile."""

    user_sub: str
    agent_key: str
    outcome: Outcome
    version: int | None = None
    decisions: int = 0
    verdict: Verdict | None = None
    metrics: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class _Due:
    """A profile whose candidate is to be trained."""

    profile: Profile
    examples: Examples
    shares: bool
    """Whether its numbers may train the shared prior."""


async def learn(
    database: Database, fit: Fit, *, only: Profile | None = None, demand: Demand | None = None, seed: int = 0
) -> AsyncIterator[Learnt]:
    """Judges every trial, watches over what serves, and trains candidates; yields what became of each profile.

    Args:
        database: where the logs are.
        fit: trains many heads at once.
        only: this profile alone; None is every one.
        demand: what a profile must have.
        seed: the same seed and logs give the same weights.

    Raises:
        DatabaseUnavailable: what was stored so far stays.
    """
    demand = demand or Demand()
    due: list[_Due] = []
    async for profile in _profiles(database, only):
        try:
            found = await _look(database, profile, demand)
        except UserErased:
            found = Learnt(profile.user_sub, profile.agent_key, "erased")
        if isinstance(found, _Due):
            due.append(found)
        else:
            yield found
    async for learnt in _train(database, due, fit, demand, seed):
        yield learnt


async def _profiles(database: Database, only: Profile | None) -> AsyncIterator[Profile]:
    if only is not None:
        yield only
        return
    async for profile in each_profile(database):
        yield profile


async def _look(database: Database, profile: Profile, demand: Demand) -> Learnt | _Due:
    """Judges and watches; answers with examples when a new candidate is due."""
    user_sub, agent_key = profile.user_sub, profile.agent_key
    async with database.as_user(user_sub, profile.seen_at) as connection:
        mine = profiles.c.user_sub == user_sub, profiles.c.agent_key == agent_key
        wants = (
            await connection.execute(select(profiles.c.learning, profiles.c.share_prior).where(*mine))
        ).one_or_none()
        if wants is None or not wants.learning:
            return Learnt(user_sub, agent_key, "learning is off")
        log = await read(connection, user_sub, agent_key)
        rows = (await connection.execute(promote.live(user_sub, agent_key).with_for_update())).all()
        policies = await _sound(connection, rows)
        if (ended := await _watch(connection, policies.get(SERVING), log)) is not None:
            return ended
        if CANDIDATE in policies:
            return await _judge(connection, policies, log)
        newest = promote.versions(user_sub, agent_key).where(stored.c.status != "failed").limit(1)
        last = (await connection.execute(newest)).one_or_none()
    due = _Due(profile, examples(log), shares=wants.share_prior)
    return _undue(due, log, last, demand) or due


async def _sound(connection: AsyncConnection, rows: Sequence[Row[Any]]) -> dict[str, Row[Any]]:
    """Returns the live policies by status; one that can serve no more has failed, and makes room for another."""
    sound = {}
    for row in rows:
        if row.stands and _policy(row) is not None:
            sound[row.status] = row
            continue
        why = "its weights cannot be loaded" if row.stands else "its shared prior was erased"
        events.warning("policy.failed", version=row.version, why=why)
        await promote.decide(connection, row, "failed")
    return sound


def _undue(due: _Due, log: Sequence[Entry], last: Row[Any] | None, demand: Demand) -> Learnt | None:
    """Returns why there is no candidate to be trained of these examples; None if there is."""
    known = due.examples
    fresh = sum(entry.rewarded for entry in log if last is None or entry.at > last.created_at)
    why: Outcome | None = None
    if len(known) < demand.decisions:
        why = "too few decisions"
    elif len(np.unique(known.reward)) == 1:
        why = "rewards all equal"
    elif fresh < demand.fresh:
        why = "nothing new"
    return why and Learnt(due.profile.user_sub, due.profile.agent_key, why, decisions=len(known))


async def _watch(connection: AsyncConnection, serving: Row[Any] | None, log: Sequence[Entry]) -> Learnt | None:
    """Rolls the serving policy back when its live reward has fallen below what it was promoted on."""
    if serving is None or not serving.verdict:
        return None
    floor = Verdict.from_json(serving.verdict).estimates["candidate"].dr.low
    mine = [entry.reward for entry in log if entry.arm == SERVING and entry.version == f"q-{serving.version}"]
    seen = watch(np.array(mine, dtype=np.float64), max(floor, 0.0))
    if not seen.roll_back:
        return None
    why = {"live_reward": seen.mean, "floor": seen.floor, "decisions": seen.decisions, "evidence": seen.evidence}
    await promote.remember(connection, serving, metrics={**serving.metrics, "rolled_back": why})
    await promote.roll_back(connection, serving.user_sub, serving.agent_key)
    events.warning("policy.rolled_back", version=serving.version, decisions=seen.decisions)
    return Learnt(serving.user_sub, serving.agent_key, "roll back", serving.version, len(mine), metrics=why)


async def _judge(connection: AsyncConnection, rows: dict[str, Row[Any]], log: Sequence[Entry]) -> Learnt:
    """Puts the trial before the gate, on the decisions since it began."""
    row = rows[CANDIDATE]
    trial = [entry for entry in log if entry.at >= row.created_at]
    verdict = verdict_on(trial, _policy(row), _policy(rows.get(SERVING)))
    await promote.remember(connection, row, verdict=verdict.as_json())
    status = {"promote": "serving", "keep": "rejected"}.get(verdict.outcome)
    if verdict.outcome == "roll back":
        await promote.roll_back(connection, row.user_sub, row.agent_key)
    elif status is not None:
        await promote.decide(connection, row, status)
    elif sum(entry.rewarded for entry in trial) >= MOST_TRIAL:
        await promote.decide(connection, row, "rejected")
    return Learnt(row.user_sub, row.agent_key, verdict.outcome, row.version, verdict.decisions, verdict)


def verdict_on(
    trial: Sequence[Entry], candidate: Policy | None, serving: Policy | None, settings: GateSettings | None = None
) -> Verdict:
    """Returns the gate's verdict on a candidate by the decisions of its trial."""
    default = target(trial, None)
    contest = Contest(target(trial, candidate), default if serving is None else target(trial, serving), default)
    return judge(logged(trial), contest, settings)


def _policy(row: Row[Any] | None) -> Policy | None:
    if row is None:
        return None
    try:
        return policy_of(row)
    except WeightsError:
        return None  # what cannot be loaded does not serve either


async def _train(database: Database, due: Sequence[_Due], fit: Fit, demand: Demand, seed: int) -> AsyncIterator[Learnt]:
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
        if not all(np.isfinite(array).all() for each_head in (head, *curve) for array in each_head.arrays().values()):
            yield Learnt(each.profile.user_sub, each.profile.agent_key, "diverged", decisions=count)
            continue
        blend = count / (count + demand.half)
        seen = [foretold(each.examples.take(rows), trained, blend) for trained in curve]
        known = int((~rows).sum())
        points = [(int(known * share), at["log_loss_gain"]) for share, at in zip(CURVE, seen, strict=True)]
        metrics = {**seen[-1], "learning_curve": [{"decisions": n, "log_loss_gain": gain} for n, gain in points]}
        worse = metrics["log_loss_gain"] < -2 * metrics["log_loss_gain_error"]
        blob, checksum = pack(head, features.VERSION)
        status = "rejected" if worse else "candidate"
        new = Stored(status, features.VERSION, blob, checksum, blend, count, metrics, start.version)
        yield await _store(database, each.profile, new)


async def _start(database: Database, due: Sequence[_Due], fit: Fit, demand: Demand, seed: int) -> Start:
    """Returns where heads begin: a prior of those who share their numbers now, else the last, else the factory's."""
    users: dict[str, list[Examples]] = {}
    for each in due:
        if each.shares:
            users.setdefault(each.profile.user_sub, []).append(each.examples)
    begin = factory(demand.members, demand.hidden)
    together = prior.pool(users)
    if together is not None:
        (head,) = fit([together], [seed], begin)
        seen = {each.profile.user_sub: each.profile.seen_at for each in due if each.shares}
        with suppress(UserErased, IntegrityError):  # of somebody who weighed in, or another trainer was first
            async with database.as_worker(seen) as connection:
                return await prior.store(connection, head, list(seen), len(together))
    async with database.as_worker() as connection:
        return await prior.latest(connection) or Start(begin)


async def _store(database: Database, profile: Profile, new: Stored) -> Learnt:
    user_sub, agent_key = profile.user_sub, profile.agent_key
    try:
        async with database.as_user(user_sub, profile.seen_at) as connection:
            version = await promote.add(connection, user_sub, agent_key, new)
    except UserErased:
        return Learnt(user_sub, agent_key, "erased")
    except IntegrityError:
        return Learnt(user_sub, agent_key, "another trainer was first")
    outcome: Outcome = "candidate" if new.status == "candidate" else "worse than the default on held-out decisions"
    return Learnt(user_sub, agent_key, outcome, version, new.decisions, metrics=dict(new.metrics))


def _seed(profile: Profile, seed: int) -> int:
    """Returns a seed of the profile's own, so that no other profile's number changes its weights."""
    digest = f"{seed}\n{profile.user_sub}\n{profile.agent_key}".encode()
    return int.from_bytes(hashlib.sha256(digest).digest()[:6], "big")
