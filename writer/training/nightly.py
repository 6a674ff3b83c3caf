"""The nightly training: replays runs, judges each trial, watches each serving policy, and trains candidates from logs.

A policy is stored only when it is completely trained, so an interrupted training changes nothing. If two trainers
store a policy of a profile at the same time, only one of them succeeds.
"""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime

import numpy as np
from sqlalchemy import exists, select
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.database.database import Database
from retrieval.errors import UserErased
from retrieval.tables.profiles import policies as stored
from retrieval.tables.profiles import profiles
from writer.profiles import Profile, each_of, in_every_profile
from writer.replays.profile_replay import replay_if_due
from writer.training import lifecycle
from writer.training.candidates import Demand, Learner, Recipe, train_candidates
from writer.training.decision_log import LoggedDecision, read
from writer.training.lifecycle import PolicyRow
from writer.training.result import TrainingOutcome, TrainingResult
from writer.training.training_data import examples
from writer.training.trial import Transition, transitions_of

OFF: TrainingOutcome = "learning or its trials are off"


async def learn(database: Database, recipe: Recipe, only: Profile | None = None) -> AsyncIterator[TrainingResult]:
    """Replays every profile, judges its trial, watches its policy, and trains candidates; yields each profile's result.

    Raises:
        DatabaseUnavailable, Exception: see ``in_every_profile``; the results stored so far stay, and the candidates of
            the profiles that did not fail are trained.
    """

    async def decide(profile: Profile) -> TrainingResult | Learner:
        await replay_if_due(database, profile, at_night=True, first_order=recipe.first_order)
        try:
            return await _judge(database, profile, recipe.demand)
        except UserErased:
            return TrainingResult(profile.user_sub, profile.agent_key, "erased")

    due: list[Learner] = []
    failed: Exception | None = None
    try:
        async for decided in in_every_profile(database, decide, None if only is None else each_of([only])):
            if isinstance(decided, Learner):
                due.append(decided)
            else:
                yield decided
    except Exception as error:  # noqa: BLE001 - it is raised once the others are trained
        failed = error
    if due:
        async for result in train_candidates(database, due, recipe):
            yield result
    if failed is not None:
        raise failed


async def _judge(database: Database, profile: Profile, demand: Demand) -> TrainingResult | Learner:
    """Judges the trial of a profile and watches what serves; returns the result, or the learner where one is due.

    Long computations run between two transactions, so that an erasure need not wait for them.

    Raises:
        UserErased: the profile's user was erased.
    """
    user_sub, agent_key = profile.user_sub, profile.agent_key
    mine = profiles.c.user_sub == user_sub, profiles.c.agent_key == agent_key
    live = stored.c.user_sub == user_sub, stored.c.agent_key == agent_key, stored.c.status.in_(lifecycle.LIVE)
    trials = profiles.c.canary > 0
    # without trials a profile is read only if it has a policy in service, which is watched, or one on trial
    learns = profiles.c.learning & (trials | exists().where(*live))
    async with database.as_user(user_sub, profile.seen_at) as connection:
        settings = select(trials.label("trials"), learns.label("learns")).where(*mine)
        if (row := (await connection.execute(settings)).one_or_none()) is None:
            return TrainingResult(user_sub, agent_key, "no such profile")
        if not row.learns:
            return TrainingResult(user_sub, agent_key, OFF)
        log = await read(connection, user_sub, agent_key)
        sound = lifecycle.versions(user_sub, agent_key).where(stored.c.status != "failed")
        newest = sound.with_only_columns(stored.c.version, stored.c.created_at).limit(1 + len(lifecycle.LIVE))
        latest = (await connection.execute(newest)).all()
        # after those: what another trainer stores in between is then seen as a trial, not only as newer
        policies = await lifecycle.live_policies(connection, user_sub, agent_key)
    transitions, ended = transitions_of(policies, log)
    if transitions:
        async with database.as_user(user_sub, profile.seen_at) as connection:
            if not await _apply(connection, policies, transitions):
                return TrainingResult(user_sub, agent_key, "another trainer was first")
    if ended is not None:
        return ended
    if not row.trials:
        return TrainingResult(user_sub, agent_key, OFF)
    failed = {transition.policy.version for transition in transitions if transition.status == "failed"}
    trained_at = next((created_at for version, created_at in latest if version not in failed), None)
    learner = Learner(profile, examples(log))
    return _why_not_due(learner, log, trained_at, demand) or learner


async def _apply(connection: AsyncConnection, live: Sequence[PolicyRow], transitions: Sequence[Transition]) -> bool:
    """Applies the transitions unless the profile's live policies have changed since they were read; returns whether."""
    user_sub, agent_key = live[0].user_sub, live[0].agent_key
    now = await lifecycle.live_policies(connection, user_sub, agent_key, lock=True)
    if {(row.version, row.status) for row in now} != {(row.version, row.status) for row in live}:
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
    """Returns the reason why no candidate is trained on these examples; None: one is trained."""
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
