"""A fleet: the profiles of one agent, over its users, that share what is learned; numbers only.

Its policy lives as a profile's does: it is trained on what profiles contribute, tried on a share of the decisions of
those that receive, judged by the gate on all their logs, clustered by user, and serves those that have none of their
own. It is watched as a whole, and in each profile by itself: one in which it does worse than the default leaves it.

Where an erasure emptied it, it is trained again without that user, and goes on as it was.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import RowMapping, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from policy.decide import CANDIDATE, SERVING, Policy
from policy.gate import Contest, judge, worse_than_default
from policy.inputs import QUERY, factory
from policy.logged import Logged, Target, joined
from policy.verdict import Settings as GateSettings
from policy.verdict import Verdict
from retrieval.database.database import Database
from retrieval.ranking.policies import DIFFERS, OF_FLEET
from retrieval.search.fleet import is_filled
from retrieval.tables.columns import SHARED
from retrieval.tables.kinds import Fleet
from retrieval.tables.policies import policies
from retrieval.telemetry import log as events
from writer.training import contributions, lifecycle, shared_prior
from writer.training.candidates import COMPARED, LEAST_DIFFERENT, Recipe
from writer.training.contributions import Contribution
from writer.training.decision_log import LoggedDecision
from writer.training.lifecycle import LIVE, PolicyRow
from writer.training.restore import restore
from writer.training.result import TrainingOutcome, TrainingResult
from writer.training.shared_prior import FEWEST_USERS, Starts, Trained, by_user, pool
from writer.training.training_data import differing, logged, target
from writer.training.trial import ENDS, contest_of, fallen, policy_in

COMPARED_OF_ONE = 10
"""Most decisions of one profile among those on which a candidate's slates are compared with the served ones."""
REST = timedelta(days=7)
"""Between the end of one trial and the beginning of the next: until then users' decisions are new ones."""
TRIES = 3
"""Most trainings in a row that begin anew because a contributor was erased meanwhile."""
LEAVING = GateSettings(min_decisions=100, min_effective=40.0, min_groups=20.0)
"""The log that a profile needs before it can leave its fleet's policy."""


@dataclass(frozen=True, slots=True, eq=False)
class Witness:
    """The evidence in one profile's log on its fleet's policies.

    Attributes:
        at: (n,), when the decisions of the trial were taken, in seconds.
        log: those decisions; their group is the user.
        contest: the policies on them.
        served: time and reward of the decisions that followed what serves.
    """

    agent_key: str
    at: NDArray[np.float64]
    log: Logged
    contest: Contest
    served: Sequence[tuple[float, float]]


@dataclass(slots=True)
class Fleets:
    """The live policies of every fleet, and what a night's look at the profiles says of them."""

    live: Mapping[str, Mapping[str, PolicyRow]] = field(default_factory=dict)
    """Live policies by agent and status."""
    witnesses: dict[str, list[Witness]] = field(default_factory=dict)
    latest: dict[str, list[LoggedDecision]] = field(default_factory=dict)
    """The latest COMPARED decisions of the receiving profiles, by agent."""

    def of(self, agent_key: str) -> Mapping[str, PolicyRow]:
        """Returns the live policies of the agent's fleet, by status."""
        return self.live.get(agent_key, {})

    def hear(self, witness: Witness, log: Sequence[LoggedDecision]) -> None:
        """Adds what one profile says, and of the latest decisions of its log as many as are still wanted."""
        self.witnesses.setdefault(witness.agent_key, []).append(witness)
        latest = self.latest.setdefault(witness.agent_key, [])
        latest += log[-min(COMPARED_OF_ONE, COMPARED - len(latest)) :] if len(latest) < COMPARED else []


async def fleets(connection: AsyncConnection) -> Fleets:
    """Returns the fleets as they are; the connection is the worker's."""
    statement = (
        select(policies.c.agent_key)
        .where(policies.c.user_sub == SHARED, policies.c.status.in_(LIVE), is_filled(policies))
        .distinct()
        .order_by(policies.c.agent_key)
    )
    live: dict[str, Mapping[str, PolicyRow]] = {}
    for agent_key in (await connection.scalars(statement)).all():
        rows = await lifecycle.live_policies(connection, SHARED, agent_key)
        live[agent_key] = {row.status: row for row in rows if policy_in(row) is not None}
    return Fleets(live)


def witness(user: int, agent_key: str, log: Sequence[LoggedDecision], live: Mapping[str, PolicyRow]) -> Witness:
    """Returns what a profile says that has none of its own, and follows these, if any; ``user`` numbers its user."""
    on_trial = live.get(CANDIDATE)
    trial = [entry for entry in log if on_trial and entry.at >= on_trial.created_at and entry.rewarded]
    seen = logged(trial)
    serving = live.get(SERVING)
    since = promoted_at(serving)
    return Witness(
        agent_key,
        np.array([entry.at.timestamp() for entry in trial]),
        replace(seen, group=np.full(len(trial), user, np.int64)),
        contest_of(trial, policy_in(on_trial), policy_in(serving)),
        [
            (entry.at.timestamp(), entry.reward)
            for entry in log
            if since and entry.at >= since and entry.arm == SERVING and entry.version.startswith(OF_FLEET)
        ],
    )


def promoted_at(serving: PolicyRow | None) -> datetime | None:
    """Returns since when the policy serves; None of none."""
    return None if serving is None else serving.promoted_at or serving.created_at


def does_worse(log: Sequence[LoggedDecision], serving: PolicyRow) -> bool:
    """Returns whether the profile's own log shows that its fleet's policy does worse there than the default.

    It may be asked every night: the chance that one is left that does no worse is at most ``Spending.error``.
    """
    since = [entry for entry in log if entry.at >= serving.created_at and entry.rewarded]
    if len(since) < LEAVING.min_decisions:
        return False  # as a look at them would say, which most profiles are spared
    return worse_than_default(logged(since), target(since, policy_in(serving)), target(since, None), LEAVING)


def verdict_on(heard: Sequence[Witness], settings: GateSettings) -> Verdict:
    """Returns the gate's verdict on the fleet's candidate by all witnesses' first decisions, clustered by user."""
    order = np.argsort(np.concatenate([each.at for each in heard]), kind="stable")[: settings.spending.longest]
    log = joined([each.log for each in heard])
    if log.covariates is not None:
        known = log.covariates[:, QUERY.index("top_similarity")]
        log = replace(log, segment=(known > np.median(known)).astype(np.int64))
    log = log.take(order)
    contest = {
        name: Target(
            np.concatenate([each.contest.named()[name].target_probability for each in heard])[order],
            predicted=np.concatenate([_promised(each.contest.named()[name]) for each in heard])[order],
        )
        for name in ("candidate", "serving", "default")
    }
    return judge(log, Contest(**contest), settings)


def _promised(target_: Target) -> NDArray[np.float64]:
    missing = np.full(len(target_.target_probability), np.nan)
    return missing if target_.predicted is None else target_.predicted


async def judge_all(database: Database, found: Fleets) -> list[TrainingResult]:
    """Judges the trial of every fleet, and watches what serves; returns what became of each."""
    results = []
    for agent_key, live in found.live.items():
        heard = found.witnesses.get(agent_key, [])
        decided = _watched(live.get(SERVING), heard) or _judged(live.get(CANDIDATE), heard)
        if decided is None:
            continue
        row, columns, result = decided
        results.append(result)
        async with database.as_worker() as connection:
            await _set(connection, row, **columns)
        if "status" in columns:
            events.warning("fleet.decided", version=row.version, status=columns["status"])
    return results


Decided = tuple[PolicyRow, Mapping[str, object], TrainingResult]


def _watched(serving: PolicyRow | None, heard: Sequence[Witness]) -> Decided | None:
    """Returns the rollback of what serves, if its reward has fallen below what it was promoted on."""
    if serving is None:
        return None
    rewards = [reward for _, reward in sorted(pair for each in heard for pair in each.served)]
    why = fallen(serving, rewards)
    if why is None:
        return None
    columns = {"status": "rolled_back", "metrics": {**serving.metrics, "rolled_back": why}, "retired_at": func.now()}
    return serving, columns, TrainingResult(SHARED, serving.agent_key, "roll back", serving.version, len(rewards))


def _judged(candidate: PolicyRow | None, heard: Sequence[Witness]) -> Decided | None:
    """Returns what the gate says of the trial; None before its first rewarded decision."""
    heard = [each for each in heard if len(each.at)]
    if candidate is None or not heard:
        return None
    verdict = verdict_on(heard, GateSettings())
    status = ENDS.get(verdict.outcome)
    if verdict.decisions >= verdict.settings.spending.longest:
        status = status or "rejected"
    columns: dict[str, object] = {"verdict": verdict.as_json()}
    if status is not None:
        columns |= {"status": status, ("promoted_at" if status == "serving" else "retired_at"): func.now()}
    outcome = verdict.outcome
    result = TrainingResult(SHARED, candidate.agent_key, outcome, candidate.version, verdict.decisions, verdict)
    return candidate, columns, result


async def _set(connection: AsyncConnection, row: PolicyRow, **columns: object) -> None:
    """Gives a live policy of a fleet these columns, unless an erasure was first; a promotion retires what served."""
    of_fleet = policies.c.user_sub == SHARED, policies.c.agent_key == row.agent_key
    this = *of_fleet, policies.c.version == row.version, is_filled(policies)
    await shared_prior.lock(connection)
    if (await connection.execute(select(policies.c.version).where(*this))).one_or_none() is None:
        return
    if columns.get("status") == "serving":
        served = update(policies).where(*of_fleet, policies.c.status == "serving")
        await connection.execute(served.values(status="retired", retired_at=func.now()))
    await connection.execute(update(policies).where(*this).values(columns))


async def train(
    database: Database, fleet: Fleet, recipe: Recipe, found: Fleets | None = None
) -> tuple[Starts, list[TrainingResult]]:
    """Trains what profiles share, where there is anything new, and returns where heads begin.

    Args:
        database: where contributions are.
        fleet: the profiles that take part.
        recipe: as much as FEWEST_USERS profiles must have for heads of their own makes a shared one.
        found: the fleets after this night's look, whose trials may begin; None: no trial begins, what was emptied is
            trained again.
    """
    begin = factory(recipe.demand.members, recipe.demand.hidden)
    for _ in range(TRIES):
        async with database.as_worker() as connection:
            given = await contributions.given(connection, fleet)
            wanting = await shared_prior.emptied(connection)
            starts = await shared_prior.latest(connection, begin)
            is_old = bool(wanting) or await _has_news(connection, given, starts)
        if not is_old or (found is None and not wanting):
            return starts, []
        trained = _trained(given, recipe)
        async with database.as_worker() as connection:
            await shared_prior.lock(connection)
            if len(await contributions.still_given(connection, given)) < len(given):
                continue  # one of them was erased, or took it back
            now = await shared_prior.latest(connection, begin)
            if now.everybody.version not in {None, starts.everybody.version}:
                return now, []  # another trainer was first
            if trained is None:
                await shared_prior.end_emptied(connection)
                return Starts(shared_prior.Start(begin)), []
            lives = _lives(await shared_prior.emptied(connection))
            begun = {} if found is None else await _trials(connection, trained, found, set(lives))
            lives |= {agent_key: columns for agent_key, columns in begun.items() if columns["status"] != "retired"}
            lives[SHARED] = {"metrics": {"contributions": len(given)}}
            results = [_result(agent_key, trained[agent_key], columns) for agent_key, columns in begun.items()]
            users = {each.user_sub for each in given}
            return await shared_prior.store(connection, trained, users, lives), results
    async with database.as_worker() as connection:
        return await shared_prior.latest(connection, begin), []


def _lives(emptied: Sequence[RowMapping]) -> dict[str, dict[str, object]]:
    """Returns the columns by which what was emptied goes on, by agent.

    Trained again, what serves and what is on trial would be the same: the one that serves goes on.
    """
    by_trial_first = sorted((row for row in emptied if row["status"] in LIVE), key=lambda row: row["status"] == SERVING)
    return {
        row["agent_key"]: {name: value for name, value in row.items() if name != "agent_key"} for row in by_trial_first
    }


async def retrain(database: Database, fleet: Fleet, recipe: Recipe) -> list[TrainingResult]:
    """Trains again what erasures have emptied, if anything, and what began there; it serves as it did before."""
    async with database.as_worker() as connection:
        wanting = await shared_prior.emptied(connection)
    if not wanting:
        return []
    starts, _ = await train(database, fleet, recipe)
    async with database.as_worker() as connection:
        live = (await fleets(connection)).live
    shared = [
        TrainingResult(SHARED, row.agent_key, "trained again", row.version, row.decisions)
        for each in live.values()
        for row in each.values()
    ]
    return shared + await restore(database, fleet, recipe, starts)


async def _has_news(connection: AsyncConnection, given: Sequence[Contribution], starts: Starts) -> bool:
    """Returns whether somebody gave something, or took it back, since the newest training."""
    number = policies.c.metrics["contributions"].as_integer().label("contributions")
    newest = select(policies.c.created_at, number).where(
        policies.c.user_sub == SHARED,
        policies.c.agent_key == SHARED,
        policies.c.version == starts.everybody.version,
    )
    row = (await connection.execute(newest)).one_or_none()
    if row is None:
        return bool(given)
    return row.contributions != len(given) or any(each.updated_at > row.created_at for each in given)


def _trained(given: Sequence[Contribution], recipe: Recipe) -> dict[str, Trained] | None:
    """Returns the head of all agents' users, and of each agent's that have enough; None where there is too little.

    Of one agent alone the two are the same.
    """
    fit, demand, seed = recipe.fit, recipe.demand, recipe.seed
    fewest = FEWEST_USERS * demand.decisions
    users = by_user(given)
    together = pool(users)
    if together is None or len(together) < fewest:
        return None
    (head,) = fit([together], [seed], factory(demand.members, demand.hidden))
    if not head.is_finite:
        return None
    found = {SHARED: Trained(head, len(together), len(users))}
    agents = sorted({each.agent_key for each in given})
    if len(agents) == 1:
        return {**found, agents[0]: found[SHARED]}
    parts = {agent_key: by_user([each for each in given if each.agent_key == agent_key]) for agent_key in agents}
    pools = {agent_key: together for agent_key in agents if (together := pool(parts[agent_key])) is not None}
    pools = {agent_key: pooled for agent_key, pooled in pools.items() if len(pooled) >= fewest}
    heads = fit(list(pools.values()), [seed] * len(pools), head) if pools else []
    for (agent_key, pooled), own in zip(pools.items(), heads, strict=True):
        if own.is_finite:
            found[agent_key] = Trained(own, len(pooled), len(parts[agent_key]))
    return found


async def _trials(
    connection: AsyncConnection, trained: Mapping[str, Trained], found: Fleets, going_on: set[str]
) -> dict[str, dict[str, object]]:
    """Returns the columns of candidates that may begin a trial now; of one that would serve the same, ``retired``."""
    begun: dict[str, dict[str, object]] = {}
    for agent_key, each in trained.items():
        if agent_key == SHARED or agent_key in going_on or CANDIDATE in found.of(agent_key):
            continue
        ended = select(
            func.max(func.coalesce(policies.c.retired_at, policies.c.promoted_at)) > func.now() - REST
        ).where(policies.c.user_sub == SHARED, policies.c.agent_key == agent_key, policies.c.verdict.is_not(None))
        if (await connection.execute(ended)).scalar_one():
            continue
        serving = policy_in(found.of(agent_key).get(SERVING))
        differs = differing(found.latest.get(agent_key, []), Policy("", each.head, 1.0), serving)
        status = "candidate" if differs >= LEAST_DIFFERENT else "retired"
        begun[agent_key] = {"status": status, "metrics": {DIFFERS: differs}}
    return begun


def _result(agent_key: str, trained: Trained, columns: Mapping[str, object]) -> TrainingResult:
    is_tried = columns["status"] == "candidate"
    outcome: TrainingOutcome = "candidate" if is_tried else "serves nearly the same slates"
    return TrainingResult(SHARED, agent_key, outcome, decisions=trained.decisions)
