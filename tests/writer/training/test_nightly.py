"""The nightly training: who has a turn, what it takes, and trainers that meet."""

import asyncio
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from sqlalchemy import update

from retrieval.database.database import Database
from retrieval.tables.decisions import decisions
from tests.logs import put
from tests.policies import stored
from tests.writer.conftest import AGENT, Bank
from tests.writer.trainings import (
    LITTLE,
    give,
    give_serving,
    learnt,
    log,
    meanwhile,
    never,
    quick,
    rows,
    seen,
    statuses,
)
from writer.profiles import Profile
from writer.rights.erase import erase
from writer.training.candidates import Demand, Recipe
from writer.training.nightly import learn


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


async def test_a_profile_that_does_not_learn_is_left_alone(bank: Bank, user: str):
    await log(bank, user, seen())
    await bank.set_profile(user, learning=False)
    assert (await learnt(bank, user, never)).outcome == "learning or its trials are off"


async def test_a_profile_that_is_not_there_is_told_as_none(bank: Bank, user: str):
    assert (await learnt(bank, user, never)).outcome == "no such profile"


async def test_what_was_trained_on_is_not_trained_on_again(bank: Bank, user: str):
    await log(bank, user, seen())
    await give(bank, user, stored("rejected"))
    assert (await learnt(bank, user, never)).outcome == "nothing new"
    await log(bank, user, seen(Demand().fresh, seed=2))
    assert (await learnt(bank, user)).version == 2


async def test_of_two_trainers_at_once_one_stores_its_candidate(bank: Bank, user: str, database_url: str):
    await give_serving(bank, user)
    others = []

    async def another(database: Database) -> None:
        others.extend([each async for each in learn(database, Recipe(quick), bank.profile(user))])

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
    found = [each.outcome async for each in learn(bank.database, Recipe(never), profile)]
    assert found == ["erased"]


async def test_a_night_goes_on_past_a_user_who_is_erased_during_it(alone: tuple[Bank, str]):
    bank, _ = alone
    for number in range(3):
        await log(bank, f"user-{number}", seen(10, seed=number))
    found = {}
    async with aclosing(learn(bank.database, Recipe(never))) as told:
        async for each in told:
            found[each.user_sub] = each.outcome
            if each.user_sub == "user-0":
                assert (await erase(bank.database, "user-1")).clean
    assert found == {"user-0": "too few decisions", "user-1": "erased", "user-2": "too few decisions"}
    assert set((await bank.counts("user-1")).values()) == {0}


async def test_a_trainer_whose_caller_stops_listening_has_stored_what_it_told(alone: tuple[Bank, str]):
    bank, _ = alone
    for number in range(2):
        await log(bank, f"user-{number}", seen(160, seed=number))
    async with aclosing(learn(bank.database, Recipe(quick, LITTLE))) as told:
        first = await anext(told)
    assert await statuses(bank, first.user_sub) == ["candidate"]
    assert await statuses(bank, "user-1") == []


async def test_a_profile_of_another_agent_has_a_policy_of_its_own(bank: Bank, user: str):
    await log(bank, user, seen())
    await put(bank.database, user, "second", seen(seed=2))
    await learnt(bank, user)
    other = Profile(user, "second", datetime.now(UTC))
    (found,) = [each async for each in learn(bank.database, Recipe(quick), other)]
    assert (found.outcome, found.version) == ("candidate", 1)
    first, second = await rows(bank, user)
    assert {first.agent_key, second.agent_key} == {AGENT, "second"}
    assert first.weights != second.weights


async def cut_log(database: Database, user: str) -> None:
    """Cuts the features of the user's decisions, so that the log cannot be read."""
    async with database.as_user(user, datetime.now(UTC)) as connection:
        await connection.execute(update(decisions).where(decisions.c.user_sub == user).values(features=b"cut"))


@pytest.mark.parametrize("when", ["before the training", "during the training"])
async def test_a_profile_whose_log_cannot_be_read_keeps_no_other_from_its_training(when: str, alone: tuple[Bank, str]):
    bank, url = alone
    users = [f"user-{number}" for number in range(3)]
    for each in users:
        await log(bank, each, seen())
    fit = meanwhile(url, lambda database: cut_log(database, users[1]))
    if when == "before the training":
        fit = quick
        await cut_log(bank.database, users[1])
    found = {}

    async def train() -> None:
        async for each in learn(bank.database, Recipe(fit, LITTLE)):
            found[each.user_sub] = each.version

    with pytest.raises(ValueError, match="buffer size"):
        await train()
    assert found == {users[0]: 1, users[2]: 1}
