"""The nightly training: judges each trial, watches each serving policy, and trains new candidates from the logs.

Nothing is stored before a head is finished, so a training that is interrupted changes nothing. Where two trainers
store at the same time, one of them succeeds and the other stores nothing.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
from sqlalchemy import func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from policy.inputs import factory
from retrieval.database.database import Database
from retrieval.errors import UserErased
from retrieval.search.fleet import follows, has_left, takes_part
from retrieval.tables.kinds import Fleet
from retrieval.tables.policies import policies as stored
from retrieval.tables.profiles import profiles
from writer.audit import Change, note
from writer.profiles import Profile, each_profile
from writer.training import contributions, lifecycle
from writer.training.candidates import Learner, Recipe, train_candidates
from writer.training.decision_log import LoggedDecision, read
from writer.training.fit import Demand, Fit
from writer.training.fleet import Fleets, does_worse, fleets, judge_all, witness
from writer.training.fleet import train as train_shared
from writer.training.lifecycle import PolicyRow
from writer.training.result import TrainingOutcome, TrainingResult
from writer.training.shared_prior import Start, Starts
from writer.training.training_data import examples
from writer.training.trial import Transition, transitions_of


async def learn(  # noqa: PLR0913 - each is a choice of who trains
    database: Database,
    fit: Fit,
    *,
    only: Profile | None = None,
    demand: Demand | None = None,
    seed: int = 0,
    fleet: Fleet = "choice",
) -> AsyncIterator[TrainingResult]:
    """Judges every trial, watches every serving policy, and trains candidates; yields each profile's result.

    Fleets come between the two, once all of their profiles were heard; their results have no user.

    Args:
        database: where the logs are.
        fit: trains many heads at once.
        only: this profile alone; None: every profile.
        demand: the log that a profile needs before a candidate is trained.
        seed: the same seed and logs give the same weights.
        fleet: the profiles that take part in a fleet.

    Raises:
        DatabaseUnavailable: what was stored so far stays.
    """
    recipe = Recipe(fit, demand or Demand(), seed)
    night = _Night(database, recipe.demand, fleet)
    async with database.as_worker() as connection:
        night.fleets = await fleets(connection)
    async for profile in _profiles(database, only):
        if (result := await night.judge(profile)) is not None:
            yield result
    starts, decided = await _shared(database, fleet, recipe, None if only else night.fleets)
    for result in decided:
        yield result
    for start, due in _by_start(night.due, starts, Start(factory(recipe.demand.members, recipe.demand.hidden))):
        async for result in train_candidates(database, due, start, recipe):
            yield result


async def _shared(
    database: Database, fleet: Fleet, recipe: Recipe, found: Fleets | None
) -> tuple[Starts, list[TrainingResult]]:
    """Judges the fleets and trains what is shared, unless ``found`` is None; returns where heads begin."""
    if found is None:
        return await train_shared(database, fleet, recipe)
    judged = await judge_all(database, found)
    async with database.as_worker() as connection:
        found.live = (await fleets(connection)).live  # as the gate has left them
    starts, begun = await train_shared(database, fleet, recipe, found)
    return starts, judged + begun


def _by_start(due: Sequence[Learner], starts: Starts, factory_start: Start) -> list[tuple[Start, list[Learner]]]:
    """Returns who begins where; heads that begin at one place are trained at once."""
    found: dict[int, tuple[Start, list[Learner]]] = {}
    for each in due:
        start = starts.of(each.profile.agent_key) if each.receives else factory_start
        found.setdefault(id(start), (start, []))[1].append(each)
    return list(found.values())


async def _profiles(database: Database, only: Profile | None) -> AsyncIterator[Profile]:
    if only is not None:
        yield only
        return
    async for profile in each_profile(database):
        yield profile


@dataclass(slots=True)
class _Night:
    """One night's look at the profiles: what it decides at once, and what it gathers for the training after it."""

    database: Database
    demand: Demand
    fleet: Fleet
    fleets: Fleets = field(default_factory=Fleets)
    due: list[Learner] = field(default_factory=list)
    users: dict[str, int] = field(default_factory=dict)

    async def judge(self, profile: Profile) -> TrainingResult | None:
        """Judges the trial and watches what serves; returns the result, or None where a candidate is due."""
        try:
            return await self._judge(profile)
        except UserErased:
            return TrainingResult(profile.user_sub, profile.agent_key, "erased")

    async def _judge(self, profile: Profile) -> TrainingResult | None:
        """Returns the result of one profile, which is not erased.

        Long computations run between two transactions, so that an erasure need not wait for them.
        """
        user_sub, agent_key = profile.user_sub, profile.agent_key
        async with self.database.as_user(user_sub, profile.seen_at) as connection:
            state = await _read(connection, profile, self.fleet)
        if not state.learns:
            return TrainingResult(user_sub, agent_key, "learning is off")
        followed = state.followed(self.fleets.of(agent_key))
        transitions, ended = transitions_of(state.live, state.log, followed)
        learner = Learner(profile, examples(state.log), state.receives, followed)
        leaves = _leaves(state, followed, ended)
        async with self.database.as_user(user_sub, profile.seen_at) as connection:
            if transitions and not await _apply(connection, state, transitions):
                return TrainingResult(user_sub, agent_key, "another trainer was first")
            await _settle(connection, state, learner, leaves=leaves)
        if state.receives and not state.live and not leaves:
            user = self.users.setdefault(user_sub, len(self.users))
            self.fleets.hear(witness(user, agent_key, state.log, followed), state.log)
        if ended is not None:
            return ended
        result = _why_not_due(learner, state.log, state.trained_at(transitions), self.demand)
        if result is None:
            self.due.append(learner)
        return result


def _leaves(state: "_ProfileState", followed: Mapping[str, PolicyRow], ended: TrainingResult | None) -> bool:
    """Returns whether the fleet's policy that serves the profile has been shown to do worse there than the default.

    Where one of its own is on trial, the gate has looked at that.
    """
    if "serving" not in followed:
        return False
    if state.live:
        return ended is not None and ended.outcome == "roll back"
    return does_worse(state.log, followed["serving"])


async def _settle(connection: AsyncConnection, state: "_ProfileState", learner: Learner, *, leaves: bool) -> None:
    """Stores what the profile gives to its fleet, or takes it back, and whether it leaves the fleet's policy."""
    profile = learner.profile
    owner = profile.user_sub, profile.agent_key
    if state.contributes and len(learner.examples):
        await contributions.give(connection, *owner, learner.examples)
    else:
        await contributions.take_back(connection, *owner)
    if leaves:
        mine = profiles.c.user_sub == profile.user_sub, profiles.c.agent_key == profile.agent_key
        await connection.execute(update(profiles).where(*mine).values(fleet_left_at=func.now()))
        await note(connection, Change.of(owner, lifecycle.TRAINER, "leave_fleet"))


@dataclass(frozen=True, slots=True, eq=False)
class _ProfileState:
    """A profile as a trainer read it: its part in its fleet, its log, its live and its latest policies."""

    learns: bool
    contributes: bool = False
    receives: bool = False
    follows: bool = False
    left_at: datetime | None = None
    log: Sequence[LoggedDecision] = ()
    live: Sequence[PolicyRow] = ()
    latest: Sequence[tuple[int, datetime]] = ()
    """Version and time of the latest policies that have not failed, the newest first."""

    def followed(self, fleet: Mapping[str, PolicyRow]) -> Mapping[str, PolicyRow]:
        """Returns those of the fleet's live policies that serve here, by status, where the profile has none in service.

        It follows none that it has left.
        """
        kept = {status: row for status, row in fleet.items() if not has_left(self.left_at, row.created_at)}
        return kept if self.follows else {}

    def trained_at(self, transitions: Sequence["Transition"]) -> datetime | None:
        """Returns when the newest policy was made that has not failed and does not now; None: there is none."""
        failed = {transition.policy.version for transition in transitions if transition.status == "failed"}
        return next((created_at for version, created_at in self.latest if version not in failed), None)


async def _read(connection: AsyncConnection, profile: Profile, fleet: Fleet) -> _ProfileState:
    user_sub, agent_key = profile.user_sub, profile.agent_key
    wants = select(profiles.c.learning, profiles.c.contribute, profiles.c.receive, profiles.c.fleet_left_at).where(
        profiles.c.user_sub == user_sub, profiles.c.agent_key == agent_key
    )
    row = (await connection.execute(wants)).one_or_none()
    if row is None or not row.learning:
        return _ProfileState(learns=False)
    log = await read(connection, user_sub, agent_key)
    sound = lifecycle.versions(user_sub, agent_key).where(stored.c.status != "failed")
    newest = sound.with_only_columns(stored.c.version, stored.c.created_at).limit(1 + len(lifecycle.LIVE))
    latest = [(row.version, row.created_at) for row in await connection.execute(newest)]
    # after those: what another trainer stores in between is then seen as a trial, not only as newer
    live = await lifecycle.live_policies(connection, user_sub, agent_key)
    return _ProfileState(
        learns=True,
        contributes=takes_part(fleet, row.contribute),
        receives=takes_part(fleet, row.receive),
        follows=follows(fleet, row, has_own=any(each.status == "serving" and each.stands for each in live)),
        left_at=row.fleet_left_at,
        log=log,
        live=live,
        latest=latest,
    )


async def _apply(connection: AsyncConnection, state: _ProfileState, transitions: Sequence[Transition]) -> bool:
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


def _why_not_due(
    learner: Learner, log: Sequence[LoggedDecision], trained_at: datetime | None, demand: Demand
) -> TrainingResult | None:
    """Returns why there is no candidate to be trained of these examples; None if there is."""
    known = learner.examples
    fresh = sum(entry.rewarded for entry in log if trained_at is None or entry.at > trained_at)
    why: TrainingOutcome | None = None
    missing = 0
    if len(known) < demand.decisions:
        why, missing = "too few decisions", demand.decisions - len(known)
    elif len(np.unique(known.reward)) == 1:
        why = "rewards all equal"
    elif fresh < demand.fresh:
        why, missing = "nothing new", demand.fresh - fresh
    profile = learner.profile
    return why and TrainingResult(profile.user_sub, profile.agent_key, why, decisions=len(known), missing=missing)
