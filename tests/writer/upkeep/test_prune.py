"""Pruning on a real bank: who goes, why, and in which order."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import uuid_utils.compat as uuids
from sqlalchemy import func, insert, select, update

from retrieval.schema import audit, cases, decision_slots, decisions, rewards
from tests.writer.conftest import AGENT, Bank
from writer.upkeep.expiry import BATCH
from writer.upkeep.prune import Pruned, prune, prune_all
from writer.upkeep.retention import retention

NOW = datetime.now(UTC)
DAY = timedelta(days=1)


def days_ago(days: float, **columns: Any) -> dict[str, Any]:
    return {"created_at": NOW - days * DAY, **columns}


async def reasons(bank: Bank, user: str) -> dict[Any, str]:
    noted = select(audit.c.subject_id, audit.c.payload["why"].astext).where(audit.c.user_sub == user)
    return dict(tuple(row) for row in await bank.read(user, noted.where(audit.c.action == "prune_case")))


async def test_of_201_equal_cases_the_oldest_leaves(bank: Bank, user: str):
    oldest, *_ = await bank.add(user, *(days_ago(201 - age) for age in range(201)))
    assert await prune(bank.database, bank.profile(user), now=NOW) == Pruned(soft=1)
    assert await bank.ids(user, "pruned") == {oldest}
    assert await reasons(bank, user) == {oldest: "window"}


async def test_pruning_again_changes_nothing(bank: Bank, user: str):
    await bank.add(user, *(days_ago(age) for age in range(5)))
    await bank.set_profile(user, window_size=3)
    await prune(bank.database, bank.profile(user), now=NOW)
    before = await bank.ids(user, "ready")
    assert await prune(bank.database, bank.profile(user), now=NOW) == Pruned()
    assert await bank.ids(user, "ready") == before


async def test_a_case_used_lately_counts_as_new(bank: Bank, user: str):
    used, older, *_ = await bank.add(user, days_ago(9, last_used_at=NOW), days_ago(8), days_ago(7), days_ago(6))
    await bank.set_profile(user, window_size=3)
    await prune(bank.database, bank.profile(user), now=NOW)
    assert await bank.ids(user, "pruned") == {older}
    assert used in await bank.ids(user, "ready")


async def test_an_old_case_of_high_reward_outlives_a_newer_one_of_low_reward(bank: Bank, user: str):
    helpful = days_ago(300, reuse_count=10, reuse_reward=10)
    useless = days_ago(100, reward=0.0, outcome="failure")
    good, bad, *_ = await bank.add(user, helpful, useless, *(days_ago(age) for age in range(8)))
    await bank.set_profile(user, window_size=9)
    await prune(bank.database, bank.profile(user), now=NOW)
    assert await bank.ids(user, "pruned") == {bad}
    assert good in await bank.ids(user, "ready")


async def test_a_fresh_failure_is_not_swept_away_by_a_full_bank_of_successes(bank: Bank, user: str):
    *_, fresh = await bank.add(
        user, *(days_ago(age) for age in range(1, 11)), days_ago(0, reward=0.0, outcome="failure")
    )
    await bank.set_profile(user, window_size=10)
    await prune(bank.database, bank.profile(user), now=NOW)
    assert fresh in await bank.ids(user, "ready")


async def test_a_case_without_a_reward_lies_between_success_and_failure(bank: Bank, user: str):
    values = [await worth(bank, f"{user}{reward}", reward=reward) for reward in (0.0, None, 1.0)]
    assert values == pytest.approx([1 / 3, 1 / 2, 2 / 3])


async def test_what_fails_often_weighs_less_than_what_failed_once(bank: Bank, user: str):
    once = await worth(bank, f"{user}-once", reward=0.0)
    often = await worth(bank, f"{user}-often", reward=0.0, occurrences=50)
    assert often < once / 3


async def test_being_frequent_costs_a_rewarding_case_almost_nothing(bank: Bank, user: str):
    proven = await worth(bank, f"{user}-proven", reuse_count=50, reuse_reward=50)
    assert proven > await worth(bank, f"{user}-new")


async def worth(bank: Bank, user: str, **columns: Any) -> float:
    await bank.add(user, columns)
    return float((await bank.read(user, select(retention(user, AGENT).c.retention)))[0][0])


async def test_50_copies_of_one_plan_do_not_push_out_190_different_cases(bank: Bank, user: str):
    different = await bank.add(user, *(days_ago(50 + age) for age in range(190)))
    copies = await bank.add(user, *(days_ago(age, plan=["the same"]) for age in range(50)))
    assert await prune(bank.database, bank.profile(user), now=NOW) == Pruned(soft=40)
    ready = await bank.ids(user, "ready")
    assert ready >= set(different)
    assert ready & set(copies) == set(copies[:10])


async def test_cases_without_a_plan_are_no_copies_of_each_other(bank: Bank, user: str):
    first, *_ = await bank.add(user, *(days_ago(9 - age, plan=[]) for age in range(4)))
    await bank.set_profile(user, window_size=3)
    await prune(bank.database, bank.profile(user), now=NOW)
    assert await bank.ids(user, "pruned") == {first}


async def test_a_time_limit_takes_what_was_not_used_for_so_long_whatever_its_worth(bank: Bank, user: str):
    old = days_ago(31, reuse_count=99, reuse_reward=99)
    expired, used, young = await bank.add(user, old, days_ago(31, last_used_at=NOW - DAY), days_ago(29))
    await bank.set_profile(user, ttl_days=30)
    assert await prune(bank.database, bank.profile(user), now=NOW) == Pruned(soft=1)
    assert await bank.ids(user, "ready") == {used, young}
    assert await reasons(bank, user) == {expired: "ttl"}


async def test_the_longest_possible_time_limit_is_no_limit(bank: Bank, user: str):
    await bank.add(user, days_ago(9_999))
    await bank.set_profile(user, ttl_days=2**31 - 1)
    assert await prune(bank.database, bank.profile(user), now=NOW) == Pruned()


async def test_merged_cases_go_and_pending_and_dead_ones_stay(bank: Bank, user: str):
    rows = [days_ago(999, status=status) for status in ("merged", "pending", "dead")]
    merged, pending, dead = await bank.add(user, *rows)
    await bank.set_profile(user, window_size=1, ttl_days=1)
    assert await prune(bank.database, bank.profile(user), now=NOW) == Pruned(soft=1)
    assert await bank.ids(user, "pruned") == {merged}
    assert await bank.ids(user, "pending") == {pending}
    assert await bank.ids(user, "dead") == {dead}


async def test_a_pruned_case_is_deleted_for_good_when_its_time_is_over(bank: Bank, user: str):
    await bank.add(user, days_ago(3), days_ago(2))
    await bank.set_profile(user, window_size=1)
    kept = 30 * DAY
    assert await prune(bank.database, bank.profile(user), now=NOW, kept=kept) == Pruned(soft=1)
    assert await prune(bank.database, bank.profile(user), now=NOW + kept, kept=kept) == Pruned()
    assert await prune(bank.database, bank.profile(user), now=NOW + kept + DAY, kept=kept) == Pruned(hard=1)
    assert await bank.ids(user, "pruned") == set()
    assert sorted((await reasons(bank, user)).values()) == ["deleted"]  # both entries are about one case
    assert (await bank.counts(user))["audit"] == 2


async def test_old_decisions_go_with_their_slots_and_rewards_and_the_cases_stay(bank: Bank, user: str):
    old, new = [await decide(bank, user, age) for age in (181, 179)]
    (case_id,) = await bank.add(user, days_ago(0, retrieval_id=old))
    assert await prune(bank.database, bank.profile(user), now=NOW) == Pruned(decisions=1)
    assert [row.id for row in await bank.read(user, select(decisions.c.id).where(decisions.c.user_sub == user))] == [
        new
    ]
    counts = await bank.counts(user)
    assert (counts["decision_slots"], counts["rewards"]) == (1, 1)
    assert await bank.ids(user, "ready") == {case_id}


async def decide(bank: Bank, user: str, age: int) -> Any:
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
        await connection.execute(insert(decisions).values({**key, **logged, **numbers}))
        await connection.execute(insert(decision_slots).values(slot))
        await connection.execute(insert(rewards).values(reward))
    return key["id"]


async def test_more_than_a_batch_goes_in_batches(bank: Bank, user: str):
    await bank.add(user, days_ago(1))
    double = select(*(cases.c[n] for n in COPIED), func.gen_random_uuid(), func.generate_series(1, BATCH + 5))
    columns = [*COPIED, "id", "step_count"]
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await connection.execute(insert(cases).from_select(columns, double.where(cases.c.user_sub == user)))
    await bank.set_profile(user, window_size=2)
    assert await prune(bank.database, bank.profile(user), now=NOW) == Pruned(soft=BATCH + 4)
    assert len(await bank.ids(user, "ready")) == 2


COPIED = [c.name for c in cases.c if c.name not in {"id", "step_count", "search_vector", "idempotency_key"}]


async def test_each_profile_is_pruned_by_its_own_window(bank: Bank, user: str):
    mine, yours = f"{user}-1", f"{user}-2"
    for name in (mine, yours):
        await bank.add(name, *(days_ago(age) for age in range(3)))
    await bank.set_profile(mine, window_size=1)
    assert (await prune_all(bank.database, now=NOW)).soft >= 2
    assert [len(await bank.ids(name, "ready")) for name in (mine, yours)] == [1, 3]


async def test_equal_worth_and_age_is_decided_by_the_id(bank: Bank, user: str):
    first, *rest = await bank.add(user, *(days_ago(1) for _ in range(4)))
    await bank.set_profile(user, window_size=3)
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await connection.execute(update(cases).where(cases.c.user_sub == user).values(last_used_at=NOW))
    await prune(bank.database, bank.profile(user), now=NOW)
    assert await bank.ids(user, "ready") == set(rest)
    assert await bank.ids(user, "pruned") == {first}
