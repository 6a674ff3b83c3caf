"""The gate and the watch on a real log: what is promoted, kept out, and rolled back."""

import json
from dataclasses import replace

import pytest

from policy.decide import CANDIDATE, DEFAULT, SERVING, Budget
from tests.logs import TRUTH, draw
from tests.policies import stored
from tests.writer.conftest import Bank
from tests.writer.trainings import CANARY, give, learnt, log, never, on_trial, rows, statuses
from writer.training.candidates import Demand


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
