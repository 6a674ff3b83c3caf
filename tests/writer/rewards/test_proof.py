"""Proof: what others say of a case afterwards proves it, and nothing that its run says or does itself."""

from collections import Counter
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import select, update

from retrieval.tables.cases import cases
from retrieval.tables.decisions import decision_slots, decisions
from retrieval.tables.kinds import RewardSource
from tests.fakes.openai_server import OpenAIServer
from tests.writer.conftest import Bank, MakeWorker, drain, keep, states
from tests.writer.pruned_banks import DAY
from tests.writer.rewards.test_credit import SIZE, Logged, log_decision
from writer.rewards.credit import credit_slate
from writer.rewards.feedback import Feedback, give_feedback
from writer.rights.edit import delete_decision
from writer.rights.erase import erase
from writer.upkeep.prune import DECISIONS_KEPT, prune


async def proven(bank: Bank, user: str) -> set[UUID]:
    rows = await bank.read(user, select(cases.c.id).where(cases.c.user_sub == user, cases.c.proven))
    return {row.id for row in rows}


async def judge(bank: Bank, user: str, case_id: UUID, reward: float, source: RewardSource = "user") -> None:
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await give_feedback(connection, user, "test", Feedback(reward, source, case_id=case_id))


def shown(used: set[int] | None, reward: float) -> Logged:
    """Four cases were shown, these were used, and this came of it."""
    return Logged(range(SIZE), None if used is None else frozenset(used), reward)


async def log(bank: Bank, user: str, known: list[UUID], entry: Logged, source: str = "judge") -> UUID:
    decision_id = await log_decision(bank, user, entry, known, [uuid4() for _ in range(SIZE)])
    mine = update(decisions).where(decisions.c.user_sub == user, decisions.c.id == decision_id)
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await connection.execute(mine.values(reward_source=source))
        await credit_slate(connection, user, decision_id)
    return decision_id


@pytest.mark.parametrize(
    "more", [{}, {"reward": 1.0}, {"reward": 1.0, "reward_source": "metric"}, {"reward": 1.0, "reward_source": "user"}]
)
async def test_what_comes_with_a_run_proves_nothing_however_often_it_is_sent(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str, more: dict[str, Any]
):
    for _ in range(3):
        await keep(bank, user, **more)
        await drain(worker_on(server))
    assert [row.occurrences for row in await states(bank, user) if row.status == "ready"] == [3]
    assert await proven(bank, user) == set()


async def test_a_later_reward_proves_a_case_whatever_the_name_of_its_author(bank: Bank, user: str):
    (case_id,) = await bank.add(user, {})
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await give_feedback(connection, user, "retain", Feedback(1.0, "user", case_id=case_id))
    assert await proven(bank, user) == {case_id}


async def test_a_reward_that_came_with_a_run_proves_nothing_when_a_user_of_any_name_was_erased(bank: Bank, user: str):
    (case_id,) = await bank.add(user, {"reward_source": "metric"})
    await judge(bank, user, case_id, 1.0, "heuristic")
    await erase(bank.database, "retain")
    await judge(bank, user, case_id, 1.0, "heuristic")
    assert await proven(bank, user) == set()


async def test_a_trusted_reward_given_later_proves_a_case_that_it_agrees_with(bank: Bank, user: str):
    good, bad, lost, saved = await bank.add(user, {}, {}, *[{"outcome": "failure", "reward": 0.0}] * 2)
    for case_id, reward in ((good, 1.0), (bad, 0.0), (lost, 0.0), (saved, 1.0)):
        await judge(bank, user, case_id, reward)
    assert await proven(bank, user) == {good, lost}


async def test_a_judgement_of_a_repeat_proves_the_kept_case_also_once_the_repeat_is_deleted(bank: Bank, user: str):
    (kept,) = await bank.add(user, {})
    good, bad = await bank.add(user, *[{"status": "merged", "merged_into": kept}] * 2)
    await judge(bank, user, good, 1.0)
    assert kept in await proven(bank, user)
    await judge(bank, user, bad, 0.0)
    assert kept not in await proven(bank, user)
    await judge(bank, user, good, 1.0)
    now = datetime.now(UTC)
    assert [await prune(bank.database, bank.profile(user), now=now + days * DAY) for days in (0, 31)] == [
        Counter(soft=2),
        Counter(hard=2),
    ]
    await log(bank, user, [kept, *[uuid4() for _ in range(3)]], shown({0}, 0.0))
    assert await proven(bank, user) == {kept}
    await judge(bank, user, kept, 0.0)
    assert await proven(bank, user) == set()


async def test_a_run_that_was_judged_before_it_was_merged_proves_the_kept_case(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    kept = await keep(bank, user)
    await drain(worker_on(server))
    await judge(bank, user, await keep(bank, user), 1.0)
    await drain(worker_on(server))
    assert kept in await proven(bank, user)


async def test_the_newest_judgement_counts_and_a_guess_is_none(bank: Bank, user: str):
    guessed, turned = await bank.add(user, {}, {})
    await judge(bank, user, guessed, 1.0, "heuristic")
    await judge(bank, user, turned, 1.0)
    assert await proven(bank, user) == {turned}
    await judge(bank, user, turned, 0.0)
    assert await proven(bank, user) == set()


async def test_a_case_is_proven_by_a_use_that_went_well_and_not_by_being_shown_beside(bank: Bank, user: str):
    known = await bank.add(user, *[{}] * 4)
    await log(bank, user, known, shown(None, 1.0))
    await log(bank, user, known, shown({0}, 0.0))
    await log(bank, user, known, shown({1}, 1.0), "heuristic")
    assert await proven(bank, user) == set()
    await log(bank, user, known, shown({2, 3}, 1.0))
    assert await proven(bank, user) == {known[2], known[3]}


async def test_uses_that_go_badly_take_the_proof_back(bank: Bank, user: str):
    known = await bank.add(user, *[{}] * 4)
    await log(bank, user, known, shown({0}, 1.0))
    await log(bank, user, known, shown({0}, 0.0))
    assert await proven(bank, user) == {known[0]}
    await log(bank, user, known, shown({0}, 0.0))
    assert await proven(bank, user) == set()


@pytest.mark.parametrize("later", [shown(None, 1.0), shown({1}, 1.0), shown({0}, 0.0)])
async def test_uses_count_for_a_proof_though_their_decisions_were_pruned_since(bank: Bank, user: str, later: Logged):
    known = await bank.add(user, *[{}] * 4)
    for _ in range(3):
        await log(bank, user, known, shown({0}, 1.0))
    await log(bank, user, known, shown({3}, 0.0))
    then = datetime.now(UTC) + DECISIONS_KEPT + DAY
    assert (await prune(bank.database, bank.profile(user), now=then))["decisions"] == 4
    await log(bank, user, known, later)
    assert known[0] in await proven(bank, user)
    await log(bank, user, known, shown({3}, 0.5))
    assert known[3] not in await proven(bank, user)


async def test_a_decision_that_its_user_deletes_takes_its_credit_away(bank: Bank, user: str):
    known = await bank.add(user, *[{}] * 4)
    decision_id = await log(bank, user, known, shown({0}, 1.0))
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await delete_decision(connection, bank.author(user), decision_id)
    assert await proven(bank, user) == set()
    await log(bank, user, known, shown({1}, 1.0))
    assert await proven(bank, user) == {known[1]}


async def test_a_judgement_outweighs_every_use(bank: Bank, user: str):
    known = await bank.add(user, *[{}] * 4)
    await judge(bank, user, known[0], 0.0)
    await log(bank, user, known, shown({0}, 1.0))
    assert await proven(bank, user) == set()


async def test_what_was_used_is_read_from_the_slots_as_they_are(bank: Bank, user: str):
    known = await bank.add(user, *[{}] * 4)
    await log(bank, user, known, shown({0}, 1.0))
    slot = decision_slots.c
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        told = update(decision_slots).where(slot.user_sub == user).values(used=slot.case_id == known[3])
        await connection.execute(told)
        decision_id = await connection.scalar(select(slot.decision_id).where(slot.user_sub == user).limit(1))
        await credit_slate(connection, user, decision_id)
    assert await proven(bank, user) == {known[3]}
