"""Expiry: what has had its time goes, whatever its worth."""

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest
import uuid_utils.compat as uuids
from sqlalchemy import insert, select

from retrieval.tables.columns import ALL_AGENTS
from retrieval.tables.decisions import decision_slots, decisions, rewards
from retrieval.tables.profiles import profiles
from tests.writer.conftest import AGENT, Bank
from tests.writer.pruned_banks import DAY, NOW, days_ago, reasons
from writer.upkeep.prune import prune, prune_all


async def test_a_time_limit_takes_what_was_not_used_for_so_long_whatever_its_worth(bank: Bank, user: str):
    old = days_ago(31, reuse_count=99, reuse_reward=99)
    expired, used, young = await bank.add(user, old, days_ago(31, last_used_at=NOW - DAY), days_ago(29))
    await bank.set_profile(user, ttl_days=30)
    assert await prune(bank.database, bank.profile(user), now=NOW) == Counter(soft=1)
    assert await bank.ids(user, "ready") == {used, young}
    assert await reasons(bank, user) == {expired: "ttl"}


async def test_the_longest_possible_time_limit_is_no_limit(bank: Bank, user: str):
    await bank.add(user, days_ago(9_999))
    await bank.set_profile(user, ttl_days=2**31 - 1)
    assert await prune(bank.database, bank.profile(user), now=NOW) == Counter()


async def test_old_decisions_go_with_their_slots_and_rewards_and_the_cases_stay(bank: Bank, user: str):
    old, new = [await decide(bank, user, age) for age in (181, 179)]
    (case_id,) = await bank.add(user, days_ago(0, retrieval_id=old))
    assert await prune(bank.database, bank.profile(user), now=NOW) == Counter(decisions=1)
    assert [row.id for row in await bank.read(user, select(decisions.c.id).where(decisions.c.user_sub == user))] == [
        new
    ]
    counts = await bank.counts(user)
    assert (counts["decision_slots"], counts["rewards"]) == (1, 1)
    assert await bank.ids(user, "ready") == {case_id}


async def test_the_text_of_a_decision_goes_after_thirty_days_and_the_rest_of_it_stays(bank: Bank, user: str):
    old, new = [await decide(bank, user, age, told=b"sealed", features=b"12") for age in (31, 29)]
    assert await prune(bank.database, bank.profile(user), now=NOW) == Counter()
    columns = select(decisions.c.id, decisions.c.told, decisions.c.features).where(decisions.c.user_sub == user)
    assert {tuple(row) for row in await bank.read(user, columns)} == {(old, None, b"12"), (new, b"sealed", b"12")}


@pytest.mark.parametrize("agent", [ALL_AGENTS, "an agent that was only asked"])
async def test_old_decisions_without_a_profile_go_and_those_of_other_profiles_wait_for_theirs(
    bank: Bank, user: str, agent: str
):
    await bank.add(user)
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await connection.execute(insert(profiles).values(user_sub=user, agent_key="other"))
    await decide(bank, user, 181, agent_key=agent)
    young = await decide(bank, user, 31, agent_key=agent, told=b"sealed")
    others = await decide(bank, user, 181, agent_key="other", told=b"sealed")
    assert await prune(bank.database, bank.profile(user), now=NOW) == Counter(decisions=1)
    columns = select(decisions.c.id, decisions.c.told).where(decisions.c.user_sub == user)
    assert {tuple(row) for row in await bank.read(user, columns)} == {(young, None), (others, b"sealed")}


async def test_old_decisions_of_a_user_who_only_searched_go(bank: Bank, user: str):
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await bank.keyring.find_or_make(connection, user)
    await decide(bank, user, 181)
    young = await decide(bank, user, 31, told=b"sealed")
    await prune_all(bank.database, now=NOW)
    columns = select(decisions.c.id, decisions.c.told).where(decisions.c.user_sub == user)
    assert [tuple(row) for row in await bank.read(user, columns)] == [(young, None)]


async def decide(bank: Bank, user: str, age: int, **columns: Any) -> Any:
    key = {"user_sub": user, "id": uuids.uuid7()}
    logged = {
        "agent_key": AGENT,
        "query": "q",
        "mode": "hybrid",
        "policy_version": "default",
        "created_at": NOW - age * DAY,
    }
    numbers = {
        "degraded": [],
        "feature_version": 1,
        "seed": 1,
        "arm": "default",
        "k": 4,
        "slate_propensity": 1.0,
        "candidate_ids": [],
        "candidate_groups": [],
        "candidate_sources": [],
        "features": b"",
        "scores": [],
        "tokens": 0,
    }
    slot = {"user_sub": user, "decision_id": key["id"], "place": 1, "case_id": uuids.uuid7(), "propensity": 1.0}
    reward = {
        "user_sub": user,
        "id": uuids.uuid7(),
        "decision_id": key["id"],
        "reward": 1.0,
        "source": "user",
        "actor": "t",
    }
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await connection.execute(insert(decisions).values({**key, **logged, **numbers, **columns}))
        await connection.execute(insert(decision_slots).values(slot))
        await connection.execute(insert(rewards).values(reward))
    return key["id"]
