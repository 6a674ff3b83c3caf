"""The gate and the watch on a real log: what is promoted, kept out, and rolled back."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import numpy as np
import pytest
from sqlalchemy import insert, select, update

from policy.decide import CANDIDATE, DEFAULT, SERVING, Budget
from policy.verdict import ENDED
from retrieval.tables.decisions import decisions, rewards
from retrieval.tables.profiles import policies
from tests.logs import TRUTH, draw
from tests.policies import stored
from tests.writer.conftest import AGENT, Bank
from tests.writer.trainings import CANARY, give, learnt, log, never, on_trial, rows, statuses
from writer.training.candidates import Demand
from writer.training.decision_log import MOST_DECISIONS, read
from writer.training.lifecycle import live_policies
from writer.training.trial import transitions_of


async def test_a_clear_winner_is_promoted_with_its_numbers_and_reasons(bank: Bank, user: str):
    found = await on_trial(bank, user, 600, CANARY)
    assert found.outcome == "promote", found.verdict.reasons
    (row,) = await rows(bank, user)
    assert (row.status, row.retired_at) == ("serving", None)
    assert row.promoted_at >= row.created_at
    assert row.verdict == json.loads(json.dumps(found.verdict.as_json()))
    assert row.verdict["estimates"]["candidate - default"]["low"] > 0
    assert row.verdict["decisions"] == 600
    assert row.verdict["reasons"]


async def test_a_clear_loser_is_kept_out_and_gone(bank: Bank, user: str):
    found = await on_trial(bank, user, 600, CANARY, reversed_truth=True)
    assert found.outcome == "keep"
    (row,) = await rows(bank, user)
    assert (row.status, row.promoted_at) == ("rejected", None)
    assert row.verdict == json.loads(json.dumps(found.verdict.as_json()))
    assert row.verdict["estimates"]["candidate - default"]["high"] < 0


@pytest.mark.parametrize(
    ("count", "budget"), [(150, CANARY), (600, Budget(0.0, 0.02))], ids=["few decisions", "hardly any of its slates"]
)
async def test_without_the_evidence_a_trial_goes_on_and_says_why(count: int, budget: Budget, bank: Bank, user: str):
    found = await on_trial(bank, user, count, budget)
    assert found.outcome == "insufficient evidence"
    (row,) = await rows(bank, user)
    assert (row.status, row.promoted_at) == ("candidate", None)
    assert row.verdict["reasons"] == list(found.verdict.reasons) != []
    assert "candidate" not in row.verdict["estimates"]  # refused, and not estimated


async def test_a_trial_that_cannot_be_won_ends_early_and_says_so(bank: Bank, user: str):
    found = await on_trial(bank, user, 600, CANARY, reversed_truth=True)
    assert found.outcome in {"futile", "keep"}
    assert any("futile: the chance to pass" in reason for reason in found.verdict.reasons)
    assert await statuses(bank, user) == ["rejected"]


async def test_a_trial_whose_beginning_leaves_the_log_is_over_and_asks_for_no_more(bank: Bank, user: str):
    assert (await on_trial(bank, user, 1, CANARY)).outcome == "insufficient evidence"
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        live, known = await live_policies(connection, user, AGENT), await read(connection, user, AGENT)
    known = [replace(each, reward=np.nan) for each in known]
    (goes_on,), told = transitions_of(live, known * (MOST_DECISIONS - 1))
    assert (goes_on.status, told.outcome) == (None, "insufficient evidence")
    (over,), told = transitions_of(live, known * MOST_DECISIONS)
    assert (over.status, told.outcome) == ("rejected", "keep")
    assert (told.verdict.outlook, over.columns["verdict"]["outcome"]) == (ENDED, "keep")


async def test_decisions_from_before_a_trial_are_no_evidence_for_it(bank: Bank, user: str):
    await log(bank, user, draw(600, {DEFAULT: None, CANDIDATE: TRUTH}, CANARY, seed=3))
    await give(bank, user, stored("candidate", TRUTH.head))
    found = await learnt(bank, user, never)
    assert (found.outcome, found.decisions) == ("insufficient evidence", 0)


async def test_a_policy_whose_live_reward_falls_is_rolled_back_and_its_record_says_so(bank: Bank, user: str):
    assert (await on_trial(bank, user, 600, CANARY)).outcome == "promote"
    arms = {DEFAULT: None, SERVING: TRUTH}
    await log(bank, user, draw(100, arms, Budget(0.0, 0.0, 0.05), seed=5))
    assert (await learnt(bank, user, demand=Demand(decisions=10**6))).outcome == "too few decisions"
    assert await statuses(bank, user) == ["serving"]
    failing = [replace(each, reward=0.0) for each in draw(100, arms, Budget(0.0, 0.0, 0.05), seed=6)]
    await log(bank, user, failing)
    found = await learnt(bank, user, never)
    assert (found.outcome, found.version) == ("roll back", 1)
    (row,) = await rows(bank, user)
    assert row.status == "rolled_back"
    assert row.metrics["rolled_back"]["live_reward"] < row.metrics["rolled_back"]["floor"]
    assert row.verdict["outcome"] == "promote"  # why it had been promoted


async def test_a_policy_in_service_is_watched_though_the_profile_has_no_trials_any_more(bank: Bank, user: str):
    assert (await on_trial(bank, user, 600, CANARY)).outcome == "promote"
    await bank.set_profile(user, canary=0.0)
    drawn = draw(200, {DEFAULT: None, SERVING: TRUTH}, Budget(0.0, 0.0, 0.05), seed=6)
    await log(bank, user, drawn[:100])
    assert (await learnt(bank, user, never)).outcome == "learning or its trials are off"
    await log(bank, user, [replace(each, reward=0.0) for each in drawn[100:]])
    assert (await learnt(bank, user, never)).outcome == "roll back"
    assert await statuses(bank, user) == ["rolled_back"]


async def test_a_policy_that_another_version_judged_is_watched_by_what_it_was_promoted_on(bank: Bank, user: str):
    assert (await on_trial(bank, user, 600, CANARY)).outcome == "promote"
    (row,) = await rows(bank, user)
    other = {"outcome": "promote", "estimates": {"candidate": {"low": row.verdict["estimates"]["candidate"]["low"]}}}
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await connection.execute(update(policies).where(policies.c.user_sub == user).values(verdict=other))
    drawn = draw(100, {DEFAULT: None, SERVING: TRUTH}, Budget(0.0, 0.0, 0.05), seed=6)
    await log(bank, user, [replace(each, reward=0.0) for each in drawn])
    assert (await learnt(bank, user, never)).outcome == "roll back"


async def test_the_watch_of_a_night_goes_on_from_the_last_and_counts_no_reward_twice(bank: Bank, user: str):
    assert (await on_trial(bank, user, 600, CANARY)).outcome == "promote"
    arms = {DEFAULT: None, SERVING: TRUTH}
    counted = []
    for night, number in enumerate((40, 0, 30)):
        await log(bank, user, draw(number, arms, Budget(0.0, 0.0, 0.05), seed=20 + night))
        await learnt(bank, user, never, demand=Demand(decisions=10**6))
        (row,) = await rows(bank, user)
        counted.append(row.metrics["watch"]["decisions"])
    assert 0 < counted[0] == counted[1] < counted[2] <= 70


async def test_slates_that_were_drawn_at_random_do_not_speak_against_a_policy(bank: Bank, user: str):
    assert (await on_trial(bank, user, 600, CANARY)).outcome == "promote"
    drawn = draw(400, {DEFAULT: None, SERVING: TRUTH}, Budget(0.5, 0.0, 0.0), seed=9)
    ranked = {tuple(each.decision.slate): each for each in draw(400, {SERVING: TRUTH}, Budget(0.0, 0.0, 0.0), seed=9)}
    failing = [each if tuple(each.decision.slate) in ranked else replace(each, reward=0.0) for each in drawn]
    assert sum(each.reward == 0 for each in failing) > 100
    await log(bank, user, failing)
    await learnt(bank, user, never, demand=Demand(decisions=10**6))
    assert await statuses(bank, user) == ["serving"]


async def test_a_decision_is_rewarded_when_its_first_reward_came(bank: Bank, user: str):
    await log(bank, user, draw(3, {DEFAULT: None}, CANARY, seed=3))
    late = datetime.now(UTC) + timedelta(days=2)
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        first, *_ = (await connection.scalars(select(decisions.c.id).order_by(decisions.c.id))).all()
        known = {"user_sub": user, "decision_id": first, "reward": 1.0, "source": "user", "actor": user}
        for hours in (1, 0):
            given = {**known, "id": uuid4(), "created_at": late + timedelta(hours=hours)}
            await connection.execute(insert(rewards).values(given))
        found = await read(connection, user, AGENT)
    assert [entry.rewarded_at for entry in found] == [late, found[1].at, found[2].at]
