"""Retention: what a case is worth, and which go when there are too many."""

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import select, update

from retrieval.tables.cases import cases
from tests.writer.conftest import AGENT, Bank
from tests.writer.pruned_banks import NOW, days_ago, reasons
from writer.upkeep.prune import prune, retention


async def test_of_201_equal_cases_the_oldest_leaves(bank: Bank, user: str):
    oldest, *_ = await bank.add(user, *(days_ago(201 - age) for age in range(201)))
    assert await prune(bank.database, bank.profile(user), now=NOW) == Counter(soft=1)
    assert await bank.ids(user, "pruned") == {oldest}
    assert await reasons(bank, user) == {oldest: "window"}


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
    assert await prune(bank.database, bank.profile(user), now=NOW) == Counter(soft=40)
    ready = await bank.ids(user, "ready")
    assert ready >= set(different)
    assert ready & set(copies) == set(copies[:10])


async def test_cases_without_a_plan_are_no_copies_of_each_other(bank: Bank, user: str):
    first, *_ = await bank.add(user, *(days_ago(9 - age, plan=[]) for age in range(4)))
    await bank.set_profile(user, window_size=3)
    await prune(bank.database, bank.profile(user), now=NOW)
    assert await bank.ids(user, "pruned") == {first}


async def test_equal_worth_and_age_is_decided_by_the_id(bank: Bank, user: str):
    first, *rest = await bank.add(user, *(days_ago(1) for _ in range(4)))
    await bank.set_profile(user, window_size=3)
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await connection.execute(update(cases).where(cases.c.user_sub == user).values(last_used_at=NOW))
    await prune(bank.database, bank.profile(user), now=NOW)
    assert await bank.ids(user, "ready") == set(rest)
    assert await bank.ids(user, "pruned") == {first}
