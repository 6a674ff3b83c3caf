"""Feedback: which of several rewards counts, and what a finished run passes on to the slate that it began with."""

import asyncio
from datetime import UTC, datetime
from uuid import uuid4

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select

from retrieval.errors import NotFound
from retrieval.tables.cases import cases
from retrieval.tables.decisions import decisions, rewards
from retrieval.tables.kinds import RewardSource, is_trusted
from tests.writer.blocked import begin_blocked
from tests.writer.conftest import Bank
from tests.writer.rewards.test_credit import Logged, log_decision
from writer.rewards.feedback import Feedback, Reached, credit_run, give_feedback
from writer.rights.edit import delete_case

given_rewards = st.tuples(
    st.sampled_from(["heuristic", "user", "judge", "metric"]), st.sampled_from([0.0, 0.25, 0.5, 1.0])
)


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=given_rewards, later=st.lists(given_rewards, min_size=1, max_size=5))
async def test_the_newest_trusted_reward_counts_or_else_the_newest(
    bank: Bank, first: tuple[RewardSource, float], later: list[tuple[RewardSource, float]]
):
    user = f"user-{uuid4()}"
    (case_id,) = await bank.add(user, {"reward_source": first[0], "reward": first[1]})
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        for source, reward in later:
            counts = await give_feedback(connection, user, "test", Feedback(reward, source, case_id=case_id))
    every = [first, *later]
    expected = ([each for each in every if is_trusted(each[0])] or every)[-1]
    (row,) = await bank.read(user, select(cases.c.reward_source, cases.c.reward).where(cases.c.user_sub == user))
    assert (counts.source, counts.reward) == tuple(row) == expected
    history = select(func.count()).where(rewards.c.user_sub == user, rewards.c.case_id == case_id)
    assert await bank.read(user, history) == [(len(every),)]


async def test_feedback_on_what_is_not_there_is_refused(bank: Bank, user: str):
    for subject in ({"case_id": uuid4()}, {"decision_id": uuid4()}):
        with pytest.raises(NotFound):
            async with bank.database.as_user(user, datetime.now(UTC)) as connection:
                await give_feedback(connection, user, "test", Feedback(1.0, "user", **subject))


async def test_a_run_without_a_reward_passes_nothing_on(bank: Bank, user: str):
    decision_id = await log_decision(bank, user, Logged((), None, None), [], [])
    (case_id,) = await bank.add(user, {"retrieval_id": decision_id, "reward": None, "reward_source": None})
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await credit_run(connection, user, "test", case_id)
    assert (await bank.counts(user))["rewards"] == 0


async def test_feedback_on_a_retrieval_counts_though_one_of_its_runs_is_deleted_meanwhile(
    bank: Bank, user: str, owner: asyncpg.Connection
):
    await bank.add(user)
    decision_id = await log_decision(bank, user, Logged((), None, None), [], [])
    gone, stays = await bank.add(user, *({"retrieval_id": decision_id} for _ in range(2)))

    async def reward() -> Reached:
        async with bank.database.as_user(user, datetime.now(UTC)) as connection:
            return await give_feedback(connection, user, "test", Feedback(0.5, "user", decision_id=decision_id))

    async with asyncio.timeout(60):
        async with bank.database.as_user(user, datetime.now(UTC)) as connection:
            await delete_case(connection, bank.keyring, bank.author(user), gone)
            rewarding = await begin_blocked(owner, reward())
        reached = await rewarding
    assert reached.case_ids == [stays]
    assert await bank.read(user, select(decisions.c.reward).where(decisions.c.user_sub == user)) == [(0.5,)]
