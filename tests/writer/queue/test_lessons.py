"""Lessons come after the case can be found; a worker that dies between, or fails, loses and doubles none."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from sqlalchemy import func, select

from app.providers.wordllama import WordLlamaEmbedder
from retrieval.ranking.retrieved import Question
from retrieval.retrieve import Reader
from retrieval.search.candidates import CaseSearch
from retrieval.tables.cases import case_tools
from retrieval.tables.kinds import AbstractionLevel
from retrieval.tables.memories import facts
from retrieval.tables.procedures import procedures, reflections
from tests.lessons import FIXED
from tests.writer.blocked import both_at_once
from tests.writer.conftest import AGENT, Bank, drain, keep, states, wake_all
from writer.analysis.calls import StoredRun
from writer.procedures.ports import Analysis
from writer.procedures.rules.learners import RuleLearners
from writer.queue.queue import Pace
from writer.queue.sessions import MOST_FACTS
from writer.queue.statements import requeue_dead
from writer.queue.worker import Worker
from writer.rewards.feedback import Feedback, give_feedback
from writer.rights.edit import delete_case, delete_decision
from writer.upkeep.prune import prune

SAID = [{"role": "user", "content": "I live in Leeds."}]


def worker_of(bank: Bank, pace: Pace | None = None) -> Worker:
    return Worker(bank.database, WordLlamaEmbedder(), bank.keyring, pace=pace or Pace())


async def keep_fixed(bank: Bank, user: str) -> UUID:
    return await keep(bank, user, FIXED.task, tool_traces=list(FIXED.tool_traces), turns=SAID)


async def make_findable(worker: Worker) -> None:
    """Takes all waiting cases off the queue, and learns from none, as a worker that dies after them."""
    while await worker.cases.queue.serve(worker.pace.batch, worker.cases.handle):
        pass


async def learned(bank: Bank, user: str) -> dict[str, int]:
    """Returns the numbers of the user's tools, facts and procedures."""
    tables = (case_tools, facts, procedures)
    counts = [await bank.read(user, select(func.count()).where(each.c.user_sub == user)) for each in tables]
    return {each.name: rows[0][0] for each, rows in zip(tables, counts, strict=True)}


async def test_a_run_whose_user_states_very_many_facts_is_learned_from(
    bank: Bank, owner: asyncpg.Connection, user: str
):
    turns = [" ".join(f"I like w{turn}q{number}." for number in range(100)) for turn in range(200)]
    await keep(bank, user, turns=[{"role": "user", "content": said} for said in turns])
    await drain(worker_of(bank))
    assert await queued(bank, user) == []
    assert (await learned(bank, user))["facts"] == MOST_FACTS


async def queued(bank: Bank, user: str) -> list[Any]:
    return await bank.read(user, select(reflections).where(reflections.c.user_sub == user))


async def test_a_run_whose_worker_dies_before_its_lessons_is_learned_from_once_by_the_next(
    bank: Bank, owner: asyncpg.Connection, user: str
):
    case_id = await keep_fixed(bank, user)
    died = worker_of(bank)
    await make_findable(died)
    assert [row.status for row in await states(bank, user)] == ["ready"]
    assert await learned(bank, user) == {"case_tools": 0, "facts": 0, "procedures": 0}
    leases = await died.lessons.queue.take(64)  # and dies with them
    assert case_id in {lease.row_id for lease in leases}
    await wake_all(owner)  # the leases end
    await drain(worker_of(bank))
    once = await learned(bank, user)
    assert once["case_tools"] == once["facts"] == 1
    assert once["procedures"] >= 1
    assert await queued(bank, user) == []
    await died.lessons.handle(leases)  # it was not dead
    assert await learned(bank, user) == once


async def test_a_repeat_is_never_found_beside_the_case_that_it_repeats(bank: Bank, user: str):
    for _ in range(2):
        await keep_fixed(bank, user)
        await make_findable(worker_of(bank))
    assert [(row.status, row.occurrences) for row in await states(bank, user)] == [("ready", 2), ("merged", 1)]
    await drain(worker_of(bank))
    assert [(row.status, row.occurrences) for row in await states(bank, user)] == [("ready", 2), ("merged", 1)]


async def test_a_case_that_is_deleted_before_its_lessons_teaches_nothing(bank: Bank, user: str):
    case_id = await keep_fixed(bank, user)
    worker = worker_of(bank)
    await make_findable(worker)
    leases = await worker.lessons.queue.take(64)
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await delete_case(connection, bank.keyring, bank.author(user), case_id)
    await worker.lessons.handle(leases)
    assert await learned(bank, user) == {"case_tools": 0, "facts": 0, "procedures": 0}
    assert await queued(bank, user) == []


@pytest.mark.parametrize("step", ["learning", "merging"])
async def test_a_case_that_is_deleted_while_a_worker_stores_what_a_run_told_leaves_nothing(
    bank: Bank, owner: asyncpg.Connection, user: str, step: str
):
    case_id = await keep_fixed(bank, user)
    worker = worker_of(bank)
    await make_findable(worker)
    if step == "merging":
        await drain(worker)
        await keep_fixed(bank, user)
    last = {"learning": "case_tools", "merging": "reflections"}[step]  # a table that the worker writes late
    handler = {"learning": worker.lessons, "merging": worker.cases}[step]

    async def delete_it() -> None:
        async with bank.database.as_user(user, datetime.now(UTC)) as connection:
            await delete_case(connection, bank.keyring, bank.author(user), case_id)

    await both_at_once(owner, last, handler.queue.serve(64, handler.handle), delete_it())
    counts = await bank.counts(user)
    assert {counts[name] for name in ("cases", "reflections", "procedures", "facts", "case_tools")} == {0}


async def test_a_retrieval_that_is_deleted_while_a_worker_learns_from_its_run_and_neither_waits_in_vain(
    bank: Bank, owner: asyncpg.Connection, user: str
):
    await bank.add(user, {"task": "rake the leaves"})
    worker = worker_of(bank)
    question = Question(CaseSearch(agent_key=AGENT, query="leaves"))
    slate = await Reader(bank.database, worker.embedder).retrieve(user, datetime.now(UTC), question)
    case_id = await keep(
        bank, user, "mend the roof", tool_traces=list(FIXED.tool_traces), retrieval_id=slate.retrieval_id
    )
    await make_findable(worker)

    async def delete_it() -> None:
        async with bank.database.as_user(user, datetime.now(UTC)) as connection:
            await delete_decision(connection, bank.author(user), slate.retrieval_id)

    await both_at_once(owner, "case_tools", worker.lessons.queue.serve(64, worker.lessons.handle), delete_it())
    tools = select(case_tools.c.tool).where(case_tools.c.user_sub == user, case_tools.c.case_id == case_id)
    assert len(await bank.read(user, tools)) >= 1
    assert (await bank.counts(user))["decisions"] == 0


async def test_a_case_that_expires_before_its_lessons_teaches_nothing(bank: Bank, user: str):
    await keep_fixed(bank, user)
    worker = worker_of(bank)
    await make_findable(worker)
    leases = await worker.lessons.queue.take(64)
    await bank.set_profile(user, ttl_days=30)
    in_a_month = datetime.now(UTC) + timedelta(days=31)
    assert (await prune(bank.database, bank.profile(user), now=in_a_month))["soft"] == 1
    await worker.lessons.handle(leases)
    assert await learned(bank, user) == {"case_tools": 0, "facts": 0, "procedures": 0}
    assert await queued(bank, user) == []


async def test_a_run_judged_a_failure_before_its_lessons_becomes_no_script(bank: Bank, user: str):
    case_id = await keep(bank, user, "water the garden", tool_traces=[{"tool": "tap", "input": {"n": 1}}])
    await make_findable(worker_of(bank))
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await give_feedback(connection, user, "user", Feedback(0.0, "user", case_id))
    await drain(worker_of(bank))
    scripts = select(procedures.c.id).where(procedures.c.user_sub == user, procedures.c.kind == "script")
    assert await bank.read(user, scripts) == []


async def test_lessons_that_keep_failing_are_dead_while_the_case_is_found_and_a_requeue_brings_them_back(
    bank: Bank, owner: asyncpg.Connection, user: str
):
    case_id = await keep_fixed(bank, user)
    worker = worker_of(bank, Pace(max_attempts=2, backoff_s=0, lease=timedelta(seconds=60)))
    await make_findable(worker)
    sealed = await owner.fetchval("SELECT payload FROM cases WHERE id = $1", case_id)
    await owner.execute("UPDATE cases SET payload = 'broken' WHERE id = $1", case_id)
    for _ in range(2):
        await wake_all(owner)
        await drain(worker)
    (row,) = await queued(bank, user)
    assert (row.status, row.is_new, row.last_error) == ("dead", True, "SealBroken")
    assert [row.status for row in await states(bank, user)] == ["ready"]
    await owner.execute("UPDATE cases SET payload = $2 WHERE id = $1", case_id, sealed)
    async with bank.database.as_worker() as connection:
        await connection.execute(requeue_dead(user, reflections))
    await drain(worker)
    assert await queued(bank, user) == []
    assert (await learned(bank, user))["facts"] == 1


@dataclass
class Asked(RuleLearners):
    """Learners that remembers for each run the number of its calls, and whether the run is short."""

    runs: list[tuple[int, bool]] = field(default_factory=list)

    async def analyse(self, run: StoredRun, _level: AbstractionLevel | None = None) -> Analysis:
        self.runs.append((len(run.calls), run.is_short))
        return Analysis()


async def test_a_long_run_of_equal_calls_is_analysed_beside_the_event_loop(bank: Bank, user: str):
    call = {"tool": "bash", "input": {"command": "water bed --all && rake bed"}, "output": "no tap", "status": "error"}
    for calls in (2, 100):
        await keep(bank, user, f"water {calls} beds", tool_traces=[call] * calls)
    assert all(len(row.payload) < 2_000 for row in await states(bank, user))  # compressed
    asked = Asked()
    await drain(Worker(bank.database, WordLlamaEmbedder(), bank.keyring, rules=asked))
    assert asked.runs == [(2, True), (100, False)]
