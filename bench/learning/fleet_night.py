"""Benchmark 9: time of a fleet's night with 10,000 profiles, and time without a policy after an erasure.

The numbers are made up, for only their amount counts. The database is an embedded Postgres.
"""

import asyncio
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import asyncpg
import numpy as np
from pydantic import SecretStr

from app import postgres
from app.jobs.schedule import FLEET_EVERY_S
from app.postgres.pools import service_database
from app.settings import Settings
from app.training.command import Local
from app.training.processes import Trainings
from bench.bank import empty
from bench.measure import Measurement
from policy import default, features
from policy.decide import DEFAULT
from policy.examples import Examples
from policy.inputs import CASE, QUERY
from policy.network import untrained
from policy.train import RIDGES, Plan
from retrieval.database.database import Database
from retrieval.ranking.policies import DIFFERS
from retrieval.tables.columns import SHARED
from retrieval.tables.kinds import PolicyStatus
from writer.rights.erase import erase
from writer.training import contributions
from writer.training.candidates import Recipe
from writer.training.fit import Demand
from writer.training.fleet import Fleets, train
from writer.training.nightly import learn
from writer.training.shared_prior import Trained, emptied, store

PROFILES, AGENTS, DECISIONS, PLACES, CANDIDATES = 10_000, 4, 30, 4, 64
WELL = 0.6
"""Share of the decisions that went well."""
LOOKED_AT = 200
"""Profiles whose logs are read; the time of all is extrapolated."""
BLOBS = 50
"""Contributions that differ; the others are the same as one of them."""
NIGHT_MIN, SERVED = 5.0, 0.99
HOUR_S = 3600.0
DECISION = (
    *("user_sub", "id", "agent_key", "query", "mode", "degraded", "policy_version", "feature_version", "seed", "arm"),
    *("k", "slate_propensity", "candidate_ids", "candidate_groups", "candidate_sources", "features", "scores"),
    *("tokens", "reward"),
)
SLOT = ("user_sub", "decision_id", "place", "case_id", "propensity")
RECIPE = Recipe(Local(Plan(ridges=RIDGES)), Demand())


async def run() -> list[Measurement]:
    """Returns the times, each once: they take minutes."""
    with tempfile.TemporaryDirectory(prefix="casebank-bench-", ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        try:
            looked = await _look(await empty(home, "night"))
            contested = await _look(await empty(home, "contest"), live=("serving", "candidate"))
            return await _train_and_erase(home, await empty(home, "fleet"), looked, contested)
        finally:
            postgres.release(home)


async def _look(url: str, live: Sequence[PolicyStatus] = ()) -> float:
    """Returns how many seconds a night's look at one profile takes, its log read and its contribution written.

    Args:
        url: URL of an empty bank.
        live: the fleet's policies of each agent, one in each of these states since before the first decision.
    """
    async with service_database(url) as database:
        for status in live:
            await _store(database, status)
        await _fill_logs(url, LOOKED_AT)
        started = time.perf_counter()
        nobody = Demand(decisions=LOOKED_AT * DECISIONS)  # the training is measured by itself
        outcomes = [each.outcome async for each in learn(database, RECIPE.fit, demand=nobody, fleet="on")]
        took = time.perf_counter() - started
    assert outcomes.count("too few decisions") == LOOKED_AT  # noqa: S101 - else it is another time that was taken
    return took / LOOKED_AT


async def _store(database: Database, status: PolicyStatus) -> None:
    """Stores a policy of each agent's fleet, which orders cases in a way of its own."""
    rng = np.random.default_rng(len(status))
    start = untrained(len(CASE), len(QUERY))
    own = replace(start, linear=rng.normal(0, 0.1, start.linear.shape).astype(np.float32))
    heads = {SHARED: start} | {f"agent-{number}": own for number in range(AGENTS)}
    trained = {agent: Trained(head, PROFILES * DECISIONS, PROFILES) for agent, head in heads.items()}
    lives = {agent: {"status": status, "metrics": {DIFFERS: 0.5}} for agent in heads if agent != SHARED}
    async with database.as_worker() as connection:
        await store(connection, trained, ["user-1"], lives)


async def _train_and_erase(home: Path, url: str, look_s: float, contested_s: float) -> list[Measurement]:
    await _fill_contributions(url)
    async with service_database(url) as database:
        started = time.perf_counter()
        await train(database, "on", RECIPE, Fleets())
        trained_s = time.perf_counter() - started
        assert (await erase(database, "user-1")).priors_dropped  # noqa: S101 - likewise
        settings = Settings(home=home / "service", database_url=url, master_key=SecretStr("5" * 64), fleet="on")
        started = time.perf_counter()
        training = asyncio.create_task(Trainings(settings).train_again())
        while await _is_emptied(database):  # what began there is trained after that
            assert not training.done()  # noqa: S101 - likewise
            await asyncio.sleep(0.2)
        again_s = time.perf_counter() - started
        await training
    detail = f"{PROFILES:,} users of {AGENTS} agents with {DECISIONS} decisions each"
    night = (look_s * PROFILES + trained_s) / 60
    contest = (contested_s * PROFILES + trained_s) / 60

    def looked(look_s: float) -> str:
        return (
            f"{detail}; {look_s * 1000:.1f} ms a profile, by {LOOKED_AT:,} of them, and {trained_s:.0f} s of training"
        )

    return [
        Measurement("fleet night: a whole night", night, "min", looked(look_s), NIGHT_MIN),
        Measurement("fleet night: one policy serves, one on trial", contest, "min", looked(contested_s), NIGHT_MIN),
        Measurement("fleet night: trained again after an erasure", again_s, "s", f"{detail}; a process of its own"),
        Measurement(
            "fleet night: served at one erasure an hour",
            1 - (again_s + FLEET_EVERY_S) / HOUR_S,
            "",
            "with as long as it may take until somebody looks",
            SERVED,
            at_least=True,
        ),
    ]


async def _is_emptied(database: Database) -> bool:
    async with database.as_worker() as connection:
        return bool(await emptied(connection))


def _examples(rng: np.random.Generator) -> Examples:
    """Returns what a profile gives, at random."""

    def drawn(*shape: int) -> np.ndarray:
        return rng.normal(size=shape).astype(np.float32)

    return Examples(
        inputs=drawn(DECISIONS, PLACES, len(CASE)),
        prior=drawn(DECISIONS, PLACES),
        credit=np.full((DECISIONS, PLACES), 1 / PLACES, np.float32),
        query=drawn(DECISIONS, len(QUERY)),
        reward=(rng.random(DECISIONS) < WELL).astype(np.float32),
        weight=np.ones(DECISIONS, np.float32),
        empty=np.zeros(DECISIONS, bool),
        group=np.arange(DECISIONS),
    )


async def _fill_contributions(url: str) -> None:
    blobs = [contributions.packed(_examples(np.random.default_rng(number))) for number in range(BLOBS)]
    owners = [(f"user-{number + 1}", f"agent-{number % AGENTS}") for number in range(PROFILES)]
    contributed = [(*owner, features.VERSION, DECISIONS, blobs[number % BLOBS]) for number, owner in enumerate(owners)]
    connection = await asyncpg.connect(url.replace("+asyncpg", ""))
    await _copy(connection, "profiles", ("user_sub", "agent_key"), owners)
    columns = ("user_sub", "agent_key", "feature_version", "decisions", "examples")
    await _copy(connection, "contributions", columns, contributed)
    await connection.execute("ANALYZE")
    await connection.close()


async def _fill_logs(url: str, profiles: int) -> None:
    """Leaves DECISIONS rewarded decisions of the default in each profile."""
    rng = np.random.default_rng(1)
    connection = await asyncpg.connect(url.replace("+asyncpg", ""))
    owners = [(f"user-{number + 1}", f"agent-{number % AGENTS}") for number in range(profiles)]
    await _copy(connection, "profiles", ("user_sub", "agent_key"), owners)
    seen = [features.packed(np.abs(rng.normal(size=(CANDIDATES, len(features.NAMES))))) for _ in range(BLOBS)]
    for user_sub, agent_key in owners:
        entries: list[tuple[object, ...]] = []
        slots: list[tuple[object, ...]] = []
        for number in range(DECISIONS):
            cases, key = [uuid4() for _ in range(CANDIDATES)], uuid4()
            taken = {
                "user_sub": user_sub,
                "id": key,
                "agent_key": agent_key,
                "query": f"query {number}",
                "mode": "hybrid",
                "degraded": [],
                "policy_version": default.VERSION,
                "feature_version": features.VERSION,
                "seed": 1,
                "arm": DEFAULT,
                "k": PLACES,
                "slate_propensity": 0.95,
                "candidate_ids": cases,
                "candidate_groups": list(range(CANDIDATES)),
                "candidate_sources": [0] * CANDIDATES,
                "features": seen[number],
                "scores": [0.0] * CANDIDATES,
                "tokens": 0,
                "reward": float(rng.random() < WELL),
            }
            entries.append(tuple(taken[name] for name in DECISION))
            slots += [(user_sub, key, place + 1, cases[place], 0.95) for place in range(PLACES)]
        await _copy(connection, "decisions", DECISION, entries)
        await _copy(connection, "decision_slots", SLOT, slots)
    await connection.execute("ANALYZE")
    await connection.close()


async def _copy(
    connection: asyncpg.Connection, table: str, columns: Sequence[str], rows: Sequence[tuple[object, ...]]
) -> None:
    await connection.copy_records_to_table(table, columns=columns, records=rows)
