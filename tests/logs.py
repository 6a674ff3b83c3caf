"""Logs of decisions for tests to learn from: drawn as the service draws them, with rewards whose truth is known."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import uuid_utils.compat as uuids
from sqlalchemy import insert
from sqlalchemy.dialects.postgresql import insert as upsert

from policy import features
from policy.decide import REPLAYED, Budget, Decision, Policy, Trial, decide
from policy.inputs import Inputs
from policy.slate import traits_of
from retrieval.database.database import Database
from retrieval.tables.decisions import decision_slots, decisions
from retrieval.tables.profiles import profiles
from tests.policies import head
from tests.policy.builders import pool

CANDIDATES, PLACES = 12, 4

_plain = head(vote=10)
TRUTH = Policy("q-1", replace(_plain, query_bias=_plain.query_bias - 5), 1.0)
"""Promises exactly what comes of a slate: plans that the neighbours voted for help."""


TRIES = {"explore": 0.05, "canary": 0.25}
"""Settings of a profile that tries slates and policies out, which none does unless it is told to."""


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """One decision and its reward; None is missing."""

    seen: features.Features
    decision: Decision
    version: str
    reward: float | None
    query: str


def draw(
    count: int, arms: Mapping[str, Policy | None], budget: Budget, *, seed: int = 1, reversed_truth: bool = False
) -> list[Drawn]:
    """Decisions on queries of their own; each depends on its own number and the seed alone.

    A reversed truth punishes what it would reward.
    """
    sign = -1 if reversed_truth else 1
    rngs = [np.random.default_rng([seed, number]) for number in range(count)]
    trials = [Trial(arms, budget, int(rng.integers(2**31))) for rng in rngs]
    return [_draw(rngs[n], f"query {seed} {n}", trials[n], sign) for n in range(count)]


def _draw(rng: np.random.Generator, query: str, trial: Trial, sign: int) -> Drawn:
    seen = pool(rng, CANDIDATES)
    group, source = np.arange(CANDIDATES, dtype=np.int16), np.zeros(CANDIDATES, np.int16)
    decision = decide(seen, traits_of(seen, group, source, None), PLACES, trial)
    inputs = Inputs(seen)
    odds = TRUTH.head.query_part(inputs.query).mean()
    if chosen := list(decision.slate):
        odds += (inputs.prior + TRUTH.head.case_part(inputs.case).mean(axis=0))[chosen].mean()
    chance = 1 / (1 + np.exp(-sign * odds))
    policy = trial.arms[decision.arm]
    version = REPLAYED if policy is None else policy.version
    return Drawn(seen, decision, version, float(rng.random() < chance), query)


async def put(database: Database, user: str, agent: str, drawn: Sequence[Drawn]) -> None:
    """Inserts the decisions as if the service had just logged and rewarded them; makes the profile if need be."""
    entries, slots = [], []
    for each in drawn:
        entry, places = _rows(user, agent, each)
        entries.append(entry)
        slots += places
    async with database.as_user(user, datetime.now(UTC)) as connection:
        profile = upsert(profiles).values(user_sub=user, agent_key=agent, **TRIES).on_conflict_do_nothing()
        await connection.execute(profile)
        if entries:
            await connection.execute(insert(decisions), entries)
        if slots:
            await connection.execute(insert(decision_slots), slots)


def _rows(user: str, agent: str, each: Drawn) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    decision, key = each.decision, uuids.uuid7()
    ids = [uuids.uuid7() for _ in each.seen]
    entry = {
        "user_sub": user,
        "id": key,
        "agent_key": agent,
        "query": each.query,
        "mode": "hybrid",
        "degraded": [],
        "policy_version": each.version,
        "feature_version": features.VERSION,
        "seed": 1,
        "arm": decision.arm,
        "k": PLACES,
        "slate_propensity": decision.lottery.chance(decision.slate),
        "candidate_ids": ids,
        "candidate_groups": list(range(len(ids))),
        "candidate_sources": [0] * len(ids),
        "features": features.packed(each.seen),
        "scores": decision.scores.total.tolist(),
        "tokens": 0,
        "reward": each.reward,
    }
    slots = [
        {
            "user_sub": user,
            "decision_id": key,
            "place": place + 1,
            "case_id": ids[index],
            "propensity": min(decision.lottery.place_chance(place, index), 1.0),
        }
        for place, index in enumerate(decision.slate)
    ]
    return entry, slots
