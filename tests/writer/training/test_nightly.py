"""Learning on a real log: what is trained, what is promoted, and whom nobody may learn from."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import asyncpg
import numpy as np
import pytest
from sqlalchemy import delete, select

from app.db import service_database
from app.postgres import EmbeddedPostgres
from app.providers.wordllama import WordLlamaEmbedder
from policy import features
from policy.decide import CANDIDATE, DEFAULT, SERVING, Budget, Policy
from policy.examples import Examples
from policy.network import Head
from policy.train import Plan, train
from policy.weights import pack, unpack
from retrieval.database.database import Database
from retrieval.ranking.slate import Question
from retrieval.retrieve import Reader
from retrieval.schema import cases, policies
from retrieval.search.candidates import Search
from tests.conftest import new_database
from tests.logs import TRUTH, Drawn, draw, put
from tests.policies import head, stored
from tests.writer.conftest import AGENT, Bank
from writer.privacy.keys import Keyring
from writer.profiles import Profile
from writer.rewards.feedback import Feedback, give_feedback
from writer.rights.erase import erase
from writer.training import lifecycle
from writer.training.candidates import Demand, Fit
from writer.training.decision_log import examples, read, target
from writer.training.lifecycle import NewPolicy
from writer.training.nightly import learn
from writer.training.result import TrainingResult
from writer.training.shared_prior import CAP, FEWEST_USERS, digest
from writer.upkeep.reembed import reembed

DEFAULT_ALONE: dict[str, Policy | None] = {DEFAULT: None}
EXPLORING = Budget(explore=0.5)
ENOUGH = 140
LITTLE = Demand(decisions=40, fresh=20)


def quick(profiles: Sequence[Examples], seeds: Sequence[int], start: Head) -> list[Head]:
    return train(profiles, Plan(steps=25), seeds, start)


def never(*_: object) -> list[Head]:
    raise AssertionError("there is nothing to train")


def seen(count: int = ENOUGH, seed: int = 1) -> list[Drawn]:
    """Decisions of the default, with some exploration."""
    return draw(count, DEFAULT_ALONE, EXPLORING, seed=seed)


async def log(bank: Bank, user: str, drawn: Sequence[Drawn]) -> None:
    await put(bank.database, user, AGENT, drawn)


async def give(bank: Bank, user: str, new: NewPolicy) -> int:
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        return await lifecycle.add(connection, user, AGENT, new)


async def learnt(
    bank: Bank, user: str, fit: Fit = quick, demand: Demand | None = None, seed: int = 0
) -> TrainingResult:
    (found,) = [each async for each in learn(bank.database, fit, only=bank.profile(user), demand=demand, seed=seed)]
    return found


async def everybody(bank: Bank, fit: Fit = quick, demand: Demand = LITTLE) -> dict[str, TrainingResult]:
    return {each.user_sub: each async for each in learn(bank.database, fit, demand=demand)}


async def rows(bank: Bank, user: str) -> list[Any]:
    return await bank.read(user, select(policies).where(policies.c.user_sub == user).order_by(policies.c.version))


async def statuses(bank: Bank, user: str) -> list[str]:
    return [row.status for row in await rows(bank, user)]


def meanwhile(url: str, work: Callable[[Database], Coroutine[Any, Any, Any]]) -> Fit:
    """A training during which another process does its work on the same database, once and to its end."""
    done: list[Any] = []

    async def other() -> None:
        async with service_database(url) as database:
            done.append(await work(database))

    def fit(profiles: Sequence[Examples], seeds: Sequence[int], start: Head) -> list[Head]:
        if not done:
            with ThreadPoolExecutor(1) as thread:
                thread.submit(asyncio.run, other()).result()
        return quick(profiles, seeds, start)

    return fit


@pytest.fixture
async def alone(postgres: EmbeddedPostgres) -> AsyncIterator[tuple[Bank, str]]:
    """A bank that holds the users of this test alone, and its URL."""
    url = await new_database(postgres)
    async with service_database(url) as database:
        yield Bank(database, Keyring(os.urandom(32))), url


# What is trained


async def test_a_log_that_tells_something_becomes_a_candidate_that_serves_nobody_yet(bank: Bank, user: str):
    await log(bank, user, seen())
    found = await learnt(bank, user)
    assert (found.outcome, found.version, found.decisions) == ("candidate", 1, ENOUGH)
    (row,) = await rows(bank, user)
    assert (row.status, row.decisions, row.feature_version) == ("candidate", ENOUGH, features.VERSION)
    assert row.blend == pytest.approx(ENOUGH / (ENOUGH + Demand().half))
    assert row.metrics == found.metrics
    assert row.metrics["held_out"] == pytest.approx(0.2 * ENOUGH, abs=2)
    assert row.metrics["log_loss"] == pytest.approx(row.metrics["log_loss_of_default"] - row.metrics["log_loss_gain"])
    assert (row.verdict, row.promoted_at, row.prior_version, row.contributors) == (None, None, None, None)
    assert len(unpack(row.weights, row.checksum, features.VERSION).linear) == Demand().members


async def test_too_few_decisions_train_nothing(bank: Bank, user: str):
    await log(bank, user, seen(Demand().decisions - 1))
    assert (await learnt(bank, user, never)).outcome == "too few decisions"
    assert await rows(bank, user) == []


async def test_a_profile_without_any_decision_trains_nothing(bank: Bank, user: str):
    await log(bank, user, [])
    found = await learnt(bank, user, never)
    assert (found.outcome, found.decisions) == ("too few decisions", 0)


async def test_rewards_that_are_all_equal_train_nothing(bank: Bank, user: str):
    await log(bank, user, [replace(each, reward=1.0) for each in seen()])
    assert (await learnt(bank, user, never)).outcome == "rewards all equal"


async def test_missing_rewards_are_no_decisions(bank: Bank, user: str):
    await log(bank, user, [replace(each, reward=None) for each in seen()])
    found = await learnt(bank, user, never)
    assert (found.outcome, found.decisions) == ("too few decisions", 0)


async def test_a_log_with_missing_rewards_trains_as_the_log_without_those_decisions(bank: Bank, user: str):
    known = seen()
    missing = [replace(each, reward=None) for each in seen(60, seed=2)]
    mixed = [each for pair in zip(known, missing, strict=False) for each in pair] + known[len(missing) :]
    weights = []
    for drawn in (mixed, known):
        await log(bank, user, drawn)
        await learnt(bank, user)
        weights += [row.weights for row in await rows(bank, user)]
        await erase(bank.database, user)
    assert len(weights) == 2
    assert weights[0] == weights[1]


async def test_a_profile_that_does_not_learn_is_left_alone(bank: Bank, user: str):
    await log(bank, user, seen())
    await bank.set_profile(user, learning=False)
    assert (await learnt(bank, user, never)).outcome == "learning is off"


async def test_what_was_trained_on_is_not_trained_on_again(bank: Bank, user: str):
    await log(bank, user, seen())
    await give(bank, user, stored("rejected"))
    assert (await learnt(bank, user, never)).outcome == "nothing new"
    await log(bank, user, seen(Demand().fresh, seed=2))
    assert (await learnt(bank, user)).version == 2


async def test_the_same_seed_and_log_give_the_same_bytes_and_another_seed_gives_others(bank: Bank, user: str):
    weights = []
    for seed in (0, 0, 1):
        await log(bank, user, seen())
        await learnt(bank, user, seed=seed)
        weights += [row.weights for row in await rows(bank, user)]
        await erase(bank.database, user)
    assert weights[0] == weights[1] != weights[2]


async def test_a_log_reads_the_same_when_a_case_of_it_is_gone(bank: Bank, user: str):
    ids = await bank.add(user, *({"task": f"paint the {wall} wall"} for wall in ("north", "south", "east")))
    await reembed(bank.database, WordLlamaEmbedder(), bank.profile(user))
    question = Question(Search(AGENT, "paint the wall"))
    slate = await Reader(bank.database, WordLlamaEmbedder()).retrieve(user, datetime.now(UTC), question)
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await connection.execute(delete(cases).where(cases.c.user_sub == user, cases.c.id == ids[0]))
        await give_feedback(connection, user, "t", Feedback(0.5, "user", decision_id=slate.retrieval_id))
        (entry,) = await read(connection, user, AGENT)
    assert (len(entry.slate), len(entry.features), entry.reward) == (3, 3, 0.5)
    assert examples([entry]).credit.sum() == pytest.approx(1)


# The gate


async def on_trial(
    bank: Bank, user: str, count: int, budget: Budget, *, reversed_truth: bool = False
) -> TrainingResult:
    """Puts the truth on trial, as a candidate, over so many decisions, and returns the verdict."""
    await log(bank, user, [])
    await give(bank, user, stored("candidate", TRUTH.head))
    arms = {DEFAULT: None, CANDIDATE: TRUTH}
    await log(bank, user, draw(count, arms, budget, seed=3, reversed_truth=reversed_truth))
    return await learnt(bank, user, never)


CANARY = Budget(explore=0.0, canary=0.5)


async def test_a_clear_winner_is_promoted_with_its_numbers_and_reasons(bank: Bank, user: str):
    found = await on_trial(bank, user, 600, CANARY)
    assert found.outcome == "promote", found.verdict.reasons
    (row,) = await rows(bank, user)
    assert (row.status, row.retired_at) == ("serving", None)
    assert row.promoted_at >= row.created_at
    assert row.verdict == json.loads(json.dumps(found.verdict.as_json()))
    assert row.verdict["estimates"]["candidate - default"]["dr"]["low"] > 0
    assert row.verdict["decisions"] == 600
    assert row.verdict["reasons"]


async def test_a_clear_loser_is_kept_out_and_gone(bank: Bank, user: str):
    found = await on_trial(bank, user, 600, CANARY, reversed_truth=True)
    assert found.outcome == "keep"
    (row,) = await rows(bank, user)
    assert (row.status, row.promoted_at) == ("rejected", None)
    assert row.verdict == json.loads(json.dumps(found.verdict.as_json()))
    assert row.verdict["estimates"]["candidate - default"]["dr"]["high"] < 0


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


async def test_decisions_from_before_a_trial_are_no_evidence_for_it(bank: Bank, user: str):
    await log(bank, user, draw(600, {DEFAULT: None, CANDIDATE: TRUTH}, CANARY, seed=3))
    await give(bank, user, stored("candidate", TRUTH.head))
    found = await learnt(bank, user, never)
    assert (found.outcome, found.decisions) == ("insufficient evidence", 0)


async def test_a_winner_takes_the_place_of_what_served(bank: Bank, user: str):
    await log(bank, user, [])
    twin = Policy("q-1", head(), 1.0)  # who thinks as the default does
    await give(bank, user, stored("serving", twin.head))
    await give(bank, user, stored("candidate", TRUTH.head))
    arms = {DEFAULT: None, SERVING: twin, CANDIDATE: replace(TRUTH, version="q-2")}
    await log(bank, user, draw(600, arms, CANARY, seed=4))
    assert (await learnt(bank, user, never)).outcome == "promote"
    old, new = await rows(bank, user)
    assert (old.status, new.status) == ("retired", "serving")
    assert old.retired_at == new.promoted_at


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


# What can serve no more


@pytest.mark.parametrize(
    "broken",
    [
        stored("candidate", checksum=b"of others"),
        stored("serving", **dict(zip(("weights", "checksum"), pack(head(), features.VERSION - 1), strict=True))),
    ],
    ids=["a corrupt candidate", "a policy of other features"],
)
async def test_a_policy_that_cannot_be_loaded_has_failed_and_another_is_trained(
    broken: NewPolicy, bank: Bank, user: str
):
    await log(bank, user, seen())
    await give(bank, user, broken)
    assert (await learnt(bank, user)).outcome == "candidate"
    assert await statuses(bank, user) == ["failed", "candidate"]


# Trainers that are cut off, come twice, or come too late


async def test_a_training_that_is_broken_off_leaves_what_serves_as_it_was(bank: Bank, user: str):
    await give_serving(bank, user)
    before, calls = await rows(bank, user), []

    def dying(profiles: Sequence[Examples], seeds: Sequence[int], start: Head) -> list[Head]:
        calls.append(len(profiles))
        if len(calls) == 2:  # one head is finished, the other is not
            raise MemoryError
        return quick(profiles, seeds, start)

    with pytest.raises(MemoryError):
        await learnt(bank, user, dying)
    assert await rows(bank, user) == before
    assert (await learnt(bank, user)).version == 2


async def give_serving(bank: Bank, user: str) -> None:
    await log(bank, user, [])
    await give(bank, user, stored("serving"))
    await log(bank, user, seen())


async def test_the_gate_sees_a_policy_that_would_serve_nothing_as_it_would_serve(bank: Bank, user: str):
    await log(bank, user, seen())
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        entries = await read(connection, user, AGENT)
    modest = Policy("q-1", replace(TRUTH.head, null=np.array([50.0], np.float32)), 1.0)
    empty = [not entry.slate for entry in entries]
    assert any(empty)
    assert target(entries, modest).target_probability.tolist() == empty


async def test_of_two_trainers_at_once_one_stores_its_candidate(bank: Bank, user: str, database_url: str):
    await give_serving(bank, user)
    others = []

    async def another(database: Database) -> None:
        others.extend([each async for each in learn(database, quick, only=bank.profile(user))])

    found = await learnt(bank, user, meanwhile(database_url, another))
    assert [each.outcome for each in others] == ["candidate"]
    assert found.outcome == "another trainer was first"
    assert await statuses(bank, user) == ["serving", "candidate"]


async def test_trainers_in_any_order_leave_one_candidate(bank: Bank, user: str):
    await log(bank, user, seen())
    found = await asyncio.gather(*(learnt(bank, user) for _ in range(3)))
    assert [each.outcome for each in found].count("candidate") == 1
    assert {each.outcome for each in found} <= {"candidate", "another trainer was first", "insufficient evidence"}
    assert await statuses(bank, user) == ["candidate"]


async def test_a_user_erased_during_the_training_is_not_brought_back(bank: Bank, user: str, database_url: str):
    await log(bank, user, seen())

    async def purge(database: Database) -> None:
        assert (await erase(database, user)).clean

    found = await learnt(bank, user, meanwhile(database_url, purge))
    assert (found.outcome, found.version) == ("erased", None)
    assert set((await bank.counts(user)).values()) == {0}


async def test_a_user_erased_before_their_turn_is_passed_over(bank: Bank, user: str):
    await log(bank, user, seen())
    profile = bank.profile(user)
    await erase(bank.database, user)
    found = [each.outcome async for each in learn(bank.database, never, only=profile)]
    assert found == ["erased"]


# One user and another


async def test_no_weight_of_one_user_depends_on_another_who_shares_nothing(alone: tuple[Bank, str]):
    bank, _ = alone
    weights = []
    for seed in (2, 3):
        await log(bank, "alice", seen(60, seed=seed))
        await log(bank, "bob", seen(60, seed=4))
        outcomes = await everybody(bank)
        assert {each.outcome for each in outcomes.values()} == {"candidate"}
        weights.append([(await rows(bank, user))[0].weights for user in ("alice", "bob")])
        for user in ("alice", "bob"):
            await erase(bank.database, user)
    (alice, bob), (other_alice, same_bob) = weights
    assert alice != other_alice
    assert bob == same_bob


async def sharing(bank: Bank, count: int) -> list[str]:
    users = [f"sharer-{number}" for number in range(count)]
    for number, user in enumerate(users):
        await log(bank, user, seen(45, seed=10 + number))
        await bank.set_profile(user, share_prior=True)
    return users


async def shared(url: str) -> list[Any]:
    owner = await asyncpg.connect(url.replace("+asyncpg", ""))
    try:
        return list(await owner.fetch("SELECT * FROM policies WHERE user_sub = '' ORDER BY version"))
    finally:
        await owner.close()


async def test_a_prior_is_shared_by_those_who_opted_in_and_falls_with_any_of_them(alone: tuple[Bank, str]):
    bank, url = alone
    users = await sharing(bank, FEWEST_USERS + 1)
    await log(bank, "private", seen(45, seed=9))
    outcomes = await everybody(bank)
    assert {each.outcome for each in outcomes.values()} == {"candidate"}
    (row,) = await shared(url)
    assert sorted(row["contributors"]) == sorted(digest(user) for user in users)
    assert (row["status"], row["version"]) == ("retired", 1)
    assert not any(user in str(dict(row)) for user in [*users, "private"])
    (private,) = await rows(bank, "private")
    assert private.prior_version == 1

    assert (await erase(bank.database, users[0])).priors_dropped == 1
    assert await shared(url) == []
    (live,) = await bank.read("private", lifecycle.live("private", AGENT))
    assert not live.stands

    again = await everybody(bank)
    assert {user: each.outcome for user, each in again.items()} == dict.fromkeys([*users[1:], "private"], "candidate")
    (row,) = await shared(url)
    assert sorted(row["contributors"]) == sorted(digest(user) for user in users[1:])
    assert await statuses(bank, "private") == ["failed", "candidate"]


async def test_fewer_than_that_share_nothing(alone: tuple[Bank, str]):
    bank, url = alone
    users = await sharing(bank, FEWEST_USERS - 1)
    await log(bank, "private", seen(45, seed=9))
    await everybody(bank)
    assert await shared(url) == []
    assert {(await rows(bank, user))[0].prior_version for user in [*users, "private"]} == {None}


async def test_the_numbers_of_who_did_not_opt_in_move_no_prior(alone: tuple[Bank, str]):
    bank, url = alone
    weights = []
    for seed in (8, 9):
        users = await sharing(bank, FEWEST_USERS)
        await log(bank, "private", seen(60, seed=seed))
        await everybody(bank)
        weights.append((await shared(url))[-1]["weights"])
        for user in [*users, "private"]:
            await erase(bank.database, user)
    assert weights[0] == weights[1]
    assert 1 / FEWEST_USERS <= CAP


async def test_a_sharer_erased_while_the_prior_trains_is_in_no_prior(alone: tuple[Bank, str]):
    bank, url = alone
    users = await sharing(bank, FEWEST_USERS + 1)

    async def purge(database: Database) -> None:
        assert (await erase(database, users[2])).clean

    outcomes = await everybody(bank, meanwhile(url, purge))
    assert outcomes.pop(users[2]).outcome == "erased"
    assert {each.outcome for each in outcomes.values()} == {"candidate"}
    assert await shared(url) == []
    assert {(await rows(bank, user))[0].prior_version for user in outcomes} == {None}


async def test_two_trainers_of_a_shared_prior_at_once_break_nothing(alone: tuple[Bank, str]):
    bank, url = alone
    users = await sharing(bank, FEWEST_USERS)
    found = await asyncio.gather(everybody(bank), everybody(bank))
    told = [each.outcome for outcomes in found for each in outcomes.values()]
    assert set(told) <= {"candidate", "another trainer was first", "insufficient evidence"}
    assert told.count("candidate") == len(users)
    for user in users:
        (row,) = await rows(bank, user)
        assert row.prior_version in {prior["version"] for prior in await shared(url)}


async def test_a_trainer_whose_caller_stops_listening_has_stored_what_it_told(alone: tuple[Bank, str]):
    bank, _ = alone
    for number in range(2):
        await log(bank, f"user-{number}", seen(45, seed=number))
    async with aclosing(learn(bank.database, quick, demand=LITTLE)) as told:
        first = await anext(told)
    assert await statuses(bank, first.user_sub) == ["candidate"]
    assert await statuses(bank, "user-1") == []


async def test_a_profile_of_another_agent_has_a_policy_of_its_own(bank: Bank, user: str):
    await log(bank, user, seen())
    await put(bank.database, user, "second", seen(seed=2))
    await learnt(bank, user)
    other = Profile(user, "second", datetime.now(UTC))
    (found,) = [each async for each in learn(bank.database, quick, only=other)]
    assert (found.outcome, found.version) == ("candidate", 1)
    first, second = await rows(bank, user)
    assert {first.agent_key, second.agent_key} == {AGENT, "second"}
    assert first.weights != second.weights
