"""Credit: cases and procedures share an outcome by one rule, in numpy and in SQL."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import pytest
import uuid_utils.compat as uuids
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import insert, select

from policy.examples import shared_credit
from retrieval.tables.cases import cases
from retrieval.tables.decisions import decision_slots, decisions
from retrieval.tables.procedures import procedures
from tests.writer.conftest import AGENT, Bank
from tests.writer.pruned_banks import DAY
from writer.rewards.credit import credit_slate
from writer.rights.edit import delete_decision
from writer.upkeep.prune import DECISIONS_KEPT, prune

SIZE = 4
"""Cases of the bank, and procedures beside them."""
on_postgres = settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])


@dataclass(frozen=True)
class Logged:
    """One decision: what was shown, as places among all there is, what of it was used, and its reward."""

    shown: Sequence[int]
    used: frozenset[int] | None
    reward: float | None
    agreed: Sequence[float | None] = (None,) * SIZE
    """Of every case, how well the run agreed with it; of procedures nobody knows."""

    def shares(self, *, of_cases: bool = True) -> dict[int, float]:
        """What each shown one earns, by the rule of policy."""
        used = np.array([[self.used is not None and place in self.used for place in self.shown]], bool)
        agreed = [self.agreed[place] if of_cases else None for place in self.shown]
        known = np.array([[np.nan if each is None else each for each in agreed]])
        told = shared_credit(np.ones_like(used), used, np.array([self.used is not None]), known)
        return dict(zip(self.shown, told[0].tolist(), strict=True))


rewards = st.none() | st.sampled_from([0.0, 0.25, 0.5, 1.0])
shown = st.lists(st.integers(0, SIZE - 1), min_size=1, max_size=SIZE, unique=True)
said = st.none() | st.frozensets(st.integers(0, SIZE))  # the last one is nobody's
agreed = st.lists(st.none() | st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=SIZE, max_size=SIZE)
logs = st.lists(st.builds(Logged, shown, said, rewards, agreed), min_size=1, max_size=6)


def record(log: Sequence[Logged], place: int, *, of_cases: bool = True) -> tuple[float, float]:
    """The sum of the shares of one case or procedure, and of what these paid."""
    shares = [(entry.shares(of_cases=of_cases), entry.reward) for entry in log if entry.reward is not None]
    earned = [(share.get(place, 0.0), reward) for share, reward in shares]
    return sum(share for share, _ in earned), sum(share * reward for share, reward in earned)


def picked(among: Sequence[UUID], places: Any) -> list[UUID] | None:
    """The ids at these places; of a place that nobody has, another id."""
    return None if places is None else [among[place] if place < SIZE else uuid4() for place in places]


async def cases_and_procedures(bank: Bank, user: str) -> tuple[list[UUID], list[UUID]]:
    known = await bank.add(user, *({} for _ in range(SIZE)))
    made = [uuids.uuid7() for _ in range(SIZE)]
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        for each in made:
            row = {"user_sub": user, "agent_key": AGENT, "id": each, "version": 1, "record": {}, "kind": "script"}
            await connection.execute(insert(procedures).values(row))
    return known, made


async def log_decision(bank: Bank, user: str, entry: Logged, known: list[UUID], made: list[UUID]) -> UUID:
    """Writes the decision as if cases and procedures had been shown and used alike."""
    decision_id, used = uuids.uuid7(), picked(known, entry.used)
    lists = ("degraded", "candidate_ids", "candidate_groups", "candidate_sources", "scores")
    row = {
        "user_sub": user,
        "id": decision_id,
        "agent_key": AGENT,
        "query": "q",
        "mode": "hybrid",
        "policy_version": "default",
        "feature_version": 1,
        "seed": 1,
        "arm": "default",
        "k": SIZE,
        "slate_propensity": 1.0,
        "features": b"",
        "tokens": 0,
        "procedure_ids": picked(made, entry.shown),
        "procedure_versions": [1] * len(entry.shown),
        "used_procedure_ids": picked(made, entry.used),
        "reward": entry.reward,
        "reward_source": None if entry.reward is None else "user",
        **{name: [] for name in lists},
    }
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await connection.execute(insert(decisions).values(row))
        for place, case_id in enumerate(picked(known, entry.shown) or [], start=1):
            slot = {"user_sub": user, "decision_id": decision_id, "place": place, "case_id": case_id, "propensity": 1.0}
            slot["used"] = None if used is None else case_id in used
            slot["agreed"] = entry.agreed[entry.shown[place - 1]]
            await connection.execute(insert(decision_slots).values(slot))
    return decision_id


async def log_and_credit(bank: Bank, user: str, log: Sequence[Logged], known: list[UUID], made: list[UUID]) -> None:
    logged = [await log_decision(bank, user, entry, known, made) for entry in log]
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        for decision_id in logged:
            await credit_slate(connection, user, decision_id)


@on_postgres
@given(log=logs, pruned=st.integers(0, 3))
async def test_records_are_the_sums_of_the_shares_that_policy_gives_also_of_decisions_pruned_since(
    bank: Bank, log: list[Logged], pruned: int
):
    user = f"user-{uuid4()}"
    known, made = await cases_and_procedures(bank, user)
    if old := log[:pruned]:
        await log_and_credit(bank, user, old, known, made)
        then = datetime.now(UTC) + DECISIONS_KEPT + DAY
        assert (await prune(bank.database, bank.profile(user), now=then))["decisions"] == len(old)
    await log_and_credit(bank, user, log[pruned:], known, made)
    read = select(cases.c.id, cases.c.reuse_count, cases.c.reuse_reward).where(cases.c.user_sub == user)
    of_cases = {row[0]: tuple(row[1:]) for row in await bank.read(user, read)}
    read = select(procedures.c.id, procedures.c.uses, procedures.c.use_reward).where(procedures.c.user_sub == user)
    of_procedures = {row[0]: tuple(row[1:]) for row in await bank.read(user, read)}
    for place in range(SIZE):
        assert of_cases[known[place]] == pytest.approx(record(log, place), abs=1e-5)
        assert of_procedures[made[place]] == pytest.approx(record(log, place, of_cases=False), abs=1e-5)
    worth = [sum(entry.shares().values()) for entry in log if entry.reward is not None]
    assert sum(count for count, _ in of_cases.values()) == pytest.approx(sum(worth), abs=1e-5)
    assert worth == pytest.approx([round(each) for each in worth], abs=1e-5)


async def test_a_decision_that_its_user_deletes_counts_in_no_record_from_then_on(bank: Bank, user: str):
    known, made = await cases_and_procedures(bank, user)
    logged = [Logged([0, 1], frozenset({0, 1}), 1.0), Logged([0], None, 1.0)]
    ids = [await log_decision(bank, user, entry, known, made) for entry in logged]
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        for decision_id in ids:
            await credit_slate(connection, user, decision_id)
        await delete_decision(connection, bank.author(user), ids[0])
    for table, count in ((cases, cases.c.reuse_count), (procedures, procedures.c.uses)):
        rows = await bank.read(user, select(count).where(table.c.user_sub == user).order_by(table.c.id))
        assert [row[0] for row in rows] == [1, 0, 0, 0]


async def test_two_used_cases_share_an_outcome(bank: Bank, user: str):
    known, made = await cases_and_procedures(bank, user)
    decision_id = await log_decision(bank, user, Logged([0, 1, 2], frozenset({0, 1}), 1.0), known, made)
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await credit_slate(connection, user, decision_id)
    for table, count in ((cases, cases.c.reuse_count), (procedures, procedures.c.uses)):
        rows = await bank.read(user, select(count).where(table.c.user_sub == user).order_by(table.c.id))
        assert [row[0] for row in rows] == [0.5, 0.5, 0, 0]
