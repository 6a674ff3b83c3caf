"""The worker with a slow teacher: others' cases do not wait for it, and nobody is asked about a case that is gone."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
import uuid_utils.compat as uuids
from sqlalchemy import select, update

from app.providers.wordllama import WordLlamaEmbedder
from retrieval.errors import DatabaseUnavailable
from retrieval.tables.kinds import AbstractionLevel
from retrieval.tables.procedures import procedures, reflections
from tests.lessons import FIXED
from tests.writer.conftest import AGENT, Bank
from writer.analysis.calls import StoredRun
from writer.procedures.learn_from_run import rule_learners
from writer.procedures.ports import Analysis, Learners
from writer.procedures.rules.analyst import RuleAnalyst
from writer.profiles import Profile
from writer.queue.worker import Worker
from writer.retain.retain import retain
from writer.run import FinishedRun

Meanwhile = Callable[[StoredRun], Awaitable[None]]


class Teacher:
    """Explains by rule, after something else has happened."""

    def __init__(self, meanwhile: Meanwhile) -> None:
        self.meanwhile = meanwhile
        self.explained: list[str] = []

    async def analyse(self, run: StoredRun, level: AbstractionLevel | None = None) -> Analysis:
        self.explained.append(run.task)
        await self.meanwhile(run)
        return await RuleAnalyst().analyse(run, level)

    def of(self, _profile: Profile) -> Learners:
        return replace(rule_learners(), analyst=self)


async def keep(bank: Bank, user: str, task: str) -> UUID:
    fields = {"agent": AGENT, "task": task, "outcome": "success", "tool_traces": list(FIXED.tool_traces)}
    return (await retain(bank.database, bank.keyring, FinishedRun.model_validate(fields), bank.author(user))).case_id


async def fixes(bank: Bank, user: str) -> list[Any]:
    mine = select(procedures.c.id).where(procedures.c.user_sub == user, procedures.c.level.is_(None))
    return await bank.read(user, mine)


def worker(bank: Bank, teacher: Teacher) -> Worker:
    return Worker(bank.database, WordLlamaEmbedder(), bank.keyring, llm=teacher.of)


async def change(bank: Bank, user: str, case_id: UUID, **columns: Any) -> None:
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        mine = reflections.c.user_sub == user, reflections.c.id == case_id
        await connection.execute(update(reflections).where(*mine).values(**columns))


async def test_a_profile_that_did_not_ask_for_it_is_taught_by_rule(bank: Bank, user: str):
    async def never(_run: StoredRun) -> None:
        raise AssertionError("not to be asked")

    await keep(bank, user, "paint the fence")
    await worker(bank, Teacher(never)).run_once()
    assert len(await fixes(bank, user)) == 1


async def learning(bank: Bank, user: str) -> list[UUID]:
    """Returns the user's cases from which nothing was learned yet."""
    mine = select(reflections.c.id).where(reflections.c.user_sub == user, reflections.c.is_new)
    return [row.id for row in await bank.read(user, mine.order_by(reflections.c.id))]


async def test_a_case_is_ready_before_the_model_is_asked_about_it_or_about_others(bank: Bank, user: str):
    other = f"{user}-other"
    first, second = await keep(bank, user, "paint the fence"), await keep(bank, user, "bake bread")
    await bank.set_profile(user, analyst="llm")
    seen: list[tuple[set[UUID], set[UUID]]] = []
    later: list[UUID] = []

    async def look(_run: StoredRun) -> None:
        seen.append((await bank.ids(user, "ready"), await bank.ids(other, "ready")))
        if not later:
            later.append(await keep(bank, other, "sweep the yard"))

    await worker(bank, Teacher(look)).run_once()
    assert seen == [({first, second}, set()), ({first, second}, set(later))]
    assert await learning(bank, user) == []


async def test_nobody_is_asked_about_a_case_that_another_worker_took_meanwhile(bank: Bank, user: str):
    first, second = await keep(bank, user, "paint the fence"), await keep(bank, user, "bake bread")
    await bank.set_profile(user, analyst="llm")

    async def take(_run: StoredRun) -> None:
        await change(bank, user, second, lease_token=uuids.uuid7())

    teacher = Teacher(take)
    await worker(bank, teacher).run_once()
    assert teacher.explained == ["paint the fence"]
    assert await bank.ids(user, "ready") == {first, second}
    assert await learning(bank, user) == [second]
    await change(bank, user, second, status="dead")


async def test_a_lease_begins_again_when_the_model_is_asked(bank: Bank, user: str):
    first, second = await keep(bank, user, "paint the fence"), await keep(bank, user, "bake bread")
    await bank.set_profile(user, analyst="llm")
    ends: list[datetime] = []

    async def look(_run: StoredRun) -> None:
        leased = reflections.c.user_sub == user, reflections.c.lease_token.is_not(None)
        rows = await bank.read(user, select(reflections.c.available_at).where(*leased).order_by(reflections.c.id))
        ends.append(rows[0].available_at)
        if len(rows) > 1:
            assert rows[0].available_at > rows[1].available_at  # the second still has the lease of the claim

    await worker(bank, Teacher(look)).run_once()
    assert ends[1] > ends[0]
    assert await bank.ids(user, "ready") == {first, second}


async def test_an_outage_of_the_database_while_the_model_is_asked_costs_no_lesson(bank: Bank, user: str):
    await keep(bank, user, "paint the fence")
    await bank.set_profile(user, analyst="llm")

    async def breaks(_run: StoredRun) -> None:
        raise DatabaseUnavailable("the account could not be written")

    teacher = Teacher(breaks)
    asked = worker(bank, teacher)
    with pytest.raises(DatabaseUnavailable):
        await asked.run_once()
    teacher.meanwhile = lambda _run: asyncio.sleep(0)
    while await asked.run_once():
        pass
    assert len(await fixes(bank, user)) == 1
