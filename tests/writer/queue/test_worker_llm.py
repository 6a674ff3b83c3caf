"""The worker with a slow teacher: others' cases do not wait for it, and nobody is asked about a case that is gone."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from sqlalchemy import select

from app.providers.wordllama import WordLlamaEmbedder
from retrieval.errors import DatabaseUnavailable
from retrieval.tables.kinds import AbstractionLevel
from retrieval.tables.procedures import procedures, reflections
from tests.lessons import FIXED
from tests.writer.conftest import AGENT, Bank, drain
from writer.analysis.calls import StoredRun
from writer.procedures.ports import Analysis, Learners
from writer.procedures.rules.learners import RuleLearners
from writer.profiles import Profile
from writer.queue.lessons import READ_AT_ONCE
from writer.queue.statements import depth
from writer.queue.worker import Worker
from writer.retain.retain import retain
from writer.run import FinishedRun

Meanwhile = Callable[[StoredRun], Awaitable[None]]


class Teacher(RuleLearners):
    """Explains by rule, after something else has happened."""

    def __init__(self, meanwhile: Meanwhile) -> None:
        self.meanwhile = meanwhile
        self.explained: list[str] = []

    async def analyse(self, run: StoredRun, level: AbstractionLevel | None = None) -> Analysis:
        self.explained.append(run.task)
        await self.meanwhile(run)
        return await super().analyse(run, level)

    def of(self, _profile: Profile) -> Learners:
        return self


async def keep(bank: Bank, user: str, task: str) -> UUID:
    fields = {"agent": AGENT, "task": task, "outcome": "success", "tool_traces": list(FIXED.tool_traces)}
    return (await retain(bank.database, bank.keyring, FinishedRun.model_validate(fields), bank.author(user))).case_id


async def fixes(bank: Bank, user: str) -> list[Any]:
    mine = select(procedures.c.id).where(procedures.c.user_sub == user, procedures.c.level.is_(None))
    return await bank.read(user, mine)


def worker(bank: Bank, teacher: Teacher, *, quick: bool = True) -> Worker:
    """A worker whose language model answered quickly, or slowly, the time before."""
    made = Worker(bank.database, WordLlamaEmbedder(), bank.keyring, llm=teacher.of)
    made.lessons.was_quick = quick
    return made


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
    mine = {await keep(bank, user, f"paint fence {number}") for number in range(READ_AT_ONCE + 1)}
    await bank.set_profile(user, analyst="llm")
    seen: list[tuple[set[UUID], set[UUID]]] = []
    later: list[UUID] = []

    async def look(_run: StoredRun) -> None:
        seen.append((await bank.ids(user, "ready"), await bank.ids(other, "ready")))
        if len(seen) == 1:
            later.append(await keep(bank, other, "sweep the yard"))

    await drain(worker(bank, Teacher(look)))
    assert seen == [*[(mine, set[UUID]())] * READ_AT_ONCE, (mine, set(later))]
    assert await learning(bank, user) == []


async def test_users_take_turns_with_the_model(bank: Bank, user: str):
    guest = f"{user}-guest"
    tasks = [f"paint fence {number}" for number in range(READ_AT_ONCE + 1)]
    for task in tasks:
        await keep(bank, user, task)
    await keep(bank, guest, "sweep the yard")
    for each in (user, guest):
        await bank.set_profile(each, analyst="llm")
    teacher = Teacher(lambda _run: asyncio.sleep(0))
    await drain(worker(bank, teacher))
    first, last = teacher.explained[:READ_AT_ONCE], teacher.explained[READ_AT_ONCE:]
    assert sorted(first) == sorted(["sweep the yard", *tasks[: READ_AT_ONCE - 1]])
    assert sorted(last) == sorted(tasks[READ_AT_ONCE - 1 :])


async def test_the_model_reads_runs_beside_each_other_and_the_others_are_any_workers(bank: Bank, user: str):
    tasks = [f"paint fence {number}" for number in range(READ_AT_ONCE + 1)]
    for task in tasks:
        await keep(bank, user, task)
    await bank.set_profile(user, analyst="llm")
    other = Teacher(lambda _run: asyncio.sleep(0))
    beside, held = asyncio.Barrier(READ_AT_ONCE), list[tuple[int, bool]]()

    async def look(_run: StoredRun) -> None:
        async with asyncio.timeout(60):
            if await beside.wait() == 0:
                rows = await bank.read(user, select(reflections).where(reflections.c.user_sub == user))
                held.extend(sorted((row.attempts, row.lease_token is None) for row in rows))
                await drain(worker(bank, other))
            await beside.wait()

    teacher = Teacher(look)
    await drain(worker(bank, teacher))
    assert held == [(0, True), *[(1, False)] * READ_AT_ONCE]  # for a run that waits, no attempt counts
    assert (sorted(teacher.explained), other.explained) == (tasks[:READ_AT_ONCE], tasks[READ_AT_ONCE:])
    assert await learning(bank, user) == []


async def test_a_model_that_was_slow_or_never_asked_reads_one_run_at_a_time(bank: Bank, user: str):
    tasks = [f"paint fence {number}" for number in range(READ_AT_ONCE)]
    for task in tasks:
        await keep(bank, user, task)
    await bank.set_profile(user, analyst="llm")
    teacher = Teacher(lambda _run: asyncio.sleep(0))
    fresh = worker(bank, teacher, quick=False)
    await fresh.cases.queue.serve(READ_AT_ONCE, fresh.cases.handle)
    for quick_s, asked in ((0.0, 1), (math.inf, 2), (math.inf, READ_AT_ONCE)):  # slow, quick, the others at once
        fresh.lessons.quick_s = quick_s
        await fresh.lessons.queue.serve(READ_AT_ONCE, fresh.lessons.handle)
        assert len(teacher.explained) == asked


async def test_an_answer_is_stored_while_the_model_still_reads_another_run(bank: Bank, user: str):
    for task in ("paint the fence", "bake bread"):
        await keep(bank, user, task)
    await bank.set_profile(user, analyst="llm")

    left: list[int] = []

    async def look(run: StoredRun) -> None:
        if run.task == "bake bread":
            async with asyncio.timeout(60):
                while len(await learning(bank, user)) > 1:  # noqa: ASYNC110 - the database tells nobody
                    await asyncio.sleep(0.01)
            left.append(len(await learning(bank, user)))

    await drain(worker(bank, Teacher(look)))
    assert left == [1]


async def test_a_worker_that_is_stopped_while_the_model_reads_leaves_its_runs_to_the_next(bank: Bank, user: str):
    tasks = [f"paint fence {number}" for number in range(READ_AT_ONCE)]
    for task in tasks:
        await keep(bank, user, task)
    await bank.set_profile(user, analyst="llm")
    beside = asyncio.Barrier(READ_AT_ONCE + 1)

    async def never_answers(_run: StoredRun) -> None:
        await beside.wait()
        await asyncio.Event().wait()

    stopped = asyncio.create_task(worker(bank, Teacher(never_answers)).run())
    async with asyncio.timeout(60):
        await beside.wait()
    stopped.cancel()
    await asyncio.wait([stopped])
    rows = await bank.read(user, select(reflections).where(reflections.c.user_sub == user))
    assert [(row.status, row.attempts, row.lease_token) for row in rows] == [("pending", 0, None)] * READ_AT_ONCE
    await drain(worker(bank, Teacher(lambda _run: asyncio.sleep(0))))
    assert await learning(bank, user) == []


async def test_a_run_that_waits_for_the_model_has_waited_since_its_case_could_be_found(
    bank: Bank, user: str, owner: asyncpg.Connection
):
    for number in range(READ_AT_ONCE + 1):
        await keep(bank, user, f"paint fence {number}")
    await bank.set_profile(user, analyst="llm")
    busy = worker(bank, Teacher(lambda _run: asyncio.sleep(0)))
    await busy.cases.queue.serve(READ_AT_ONCE + 1, busy.cases.handle)
    of_both = "UPDATE reflections SET created_at = now() - interval '1 hour' WHERE user_sub = $1 RETURNING created_at"
    found_at = await owner.fetchval(of_both, user)
    await busy.lessons.queue.serve(READ_AT_ONCE + 1, busy.lessons.handle)  # which releases one
    async with bank.database.as_worker() as connection:
        (waiting,) = (await connection.execute(depth(reflections))).all()
    assert tuple(waiting) == ("pending", 1, found_at)
    await drain(busy)


async def test_nobody_is_asked_about_a_case_that_another_worker_took_meanwhile(
    bank: Bank, user: str, owner: asyncpg.Connection
):
    await keep(bank, user, "paint the fence")
    await bank.set_profile(user, analyst="llm")
    teacher = Teacher(lambda _run: asyncio.sleep(0))
    late = worker(bank, teacher)
    await late.cases.queue.serve(1, late.cases.handle)
    batch = await late.lessons.read(await late.lessons.queue.take(1))
    await owner.execute("UPDATE reflections SET available_at = now() WHERE user_sub = $1", user)
    await drain(worker(bank, Teacher(lambda _run: asyncio.sleep(0))))
    await late.lessons.finish_together(batch)
    assert teacher.explained == []


async def test_a_lease_begins_again_when_the_model_is_asked(bank: Bank, user: str):
    case_id = await keep(bank, user, "paint the fence")
    await bank.set_profile(user, analyst="llm")
    end = select(reflections.c.available_at).where(reflections.c.user_sub == user, reflections.c.id == case_id)
    ends: list[datetime] = []

    async def look(_run: StoredRun) -> None:
        ends.append((await bank.read(user, end))[0].available_at)

    working = worker(bank, Teacher(look))
    await working.cases.queue.serve(1, working.cases.handle)
    leases = await working.lessons.queue.take(1)
    (claimed,) = await bank.read(user, end)
    await working.lessons.handle(leases)
    assert ends[0] > claimed.available_at


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
