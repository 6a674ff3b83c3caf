"""What the worker puts right once it looked at the outputs: counters, effects, a guessed reward; and what it leaves."""

import asyncio
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import select

from retrieval.ranking.retrieved import Question
from retrieval.retrieve import Reader
from retrieval.search.candidates import CaseSearch
from retrieval.tables.audit import audit
from retrieval.tables.decisions import decisions
from tests.fakes.openai_server import OpenAIServer
from tests.writer.conftest import AGENT, Bank, Gated, MakeWorker, drain, keep, states
from writer.rewards.feedback import Feedback, give_feedback

NOT_FOUND = "Error: order not found"
MISSED = [{"tool": "cancel_order", "input": {"id": number}, "output": NOT_FOUND, "status": "ok"} for number in (1, 2)]
"""Two calls that failed, as a backend tells them that never sets a status."""


async def one(bank: Bank, user: str, case_id: UUID) -> Any:
    return next(row for row in await states(bank, user) if row.id == case_id)


async def corrections(bank: Bank, user: str) -> list[Any]:
    mine = select(audit.c.subject_id, audit.c.actor, audit.c.payload)
    return await bank.read(user, mine.where(audit.c.user_sub == user, audit.c.action == "correct_case"))


async def reward_by(bank: Bank, user: str, feedback: Feedback) -> None:
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await give_feedback(connection, user, "test", feedback)


async def test_calls_that_answer_an_error_with_the_status_ok_are_failed_calls_in_the_case(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    case_id = await keep(bank, user, tool_traces=MISSED)
    await drain(worker_on(server))
    row = await one(bank, user, case_id)
    assert (row.status, row.error_count, row.effects, row.reward) == ("ready", 2, [], 0.5)
    assert row.reward_source == "heuristic"
    assert row.search_vector == "'cancel':4 'error':6C 'found':9C 'garden':3 'order':5,7C 'water':1"


async def test_the_audit_says_what_was_corrected(bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str):
    case_id = await keep(bank, user, tool_traces=MISSED)
    await drain(worker_on(server))
    (entry,) = await corrections(bank, user)
    assert (entry.subject_id, entry.actor) == (case_id, "worker")
    assert entry.payload == {
        "error_count": {"from": 0, "to": 2},
        "effects": {"from": ["cancel_order", "cancel_order"], "to": []},
        "reward": {"from": 1.0, "to": 0.5},
    }


@pytest.mark.parametrize(
    "traces",
    [
        [],
        [{"tool": "find_order", "output": "#W1"}],
        [{"tool": "find_order", "output": NOT_FOUND, "status": "error"}, {"tool": "find_order", "output": "#W1"}],
    ],
    ids=["no calls", "no failure", "the status said so"],
)
async def test_where_the_statuses_told_everything_nothing_is_corrected(
    traces: list[dict[str, Any]], bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    case_id = await keep(bank, user, tool_traces=traces)
    before = await one(bank, user, case_id)
    await drain(worker_on(server))
    after = await one(bank, user, case_id)
    told = ("error_count", "effects", "reward", "reward_source")
    assert [getattr(after, name) for name in told] == [getattr(before, name) for name in told]
    assert await corrections(bank, user) == []


async def test_a_failed_call_that_a_later_one_made_good_costs_no_reward(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    case_id = await keep(bank, user, tool_traces=[MISSED[0], {"tool": "cancel_order", "output": "cancelled"}])
    await drain(worker_on(server))
    row = await one(bank, user, case_id)
    assert (row.error_count, row.effects, row.reward) == (1, ["cancel_order"], 1.0)
    (entry,) = await corrections(bank, user)
    assert set(entry.payload) == {"error_count", "effects"}


@pytest.mark.parametrize("source", ["user", "judge", "metric", "heuristic"])
async def test_a_reward_that_the_backend_gave_stays(
    source: str, bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    case_id = await keep(bank, user, tool_traces=MISSED, reward=0.75, reward_source=source)
    await drain(worker_on(server))
    row = await one(bank, user, case_id)
    assert (row.error_count, row.reward, row.reward_source) == (2, 0.75, source)


@pytest.mark.parametrize("source", ["user", "heuristic"])
async def test_feedback_from_before_the_worker_stays(
    source: Any, bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    case_id = await keep(bank, user, tool_traces=MISSED)
    await reward_by(bank, user, Feedback(1.0, source, case_id=case_id))
    await drain(worker_on(server))
    row = await one(bank, user, case_id)
    assert (row.error_count, row.reward, row.reward_source) == (2, 1.0, source)


async def test_feedback_that_comes_while_the_worker_holds_the_case_stays_and_is_what_its_slate_earns(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    await bank.add(user, {"task": "rake the leaves"})
    slate = await Reader(bank.database, worker_on(server).embedder).retrieve(
        user, datetime.now(UTC), Question(CaseSearch(agent_key=AGENT, query="leaves"))
    )
    case_id = await keep(bank, user, tool_traces=MISSED, retrieval_id=slate.retrieval_id)
    with Gated() as gate:
        late = asyncio.create_task(worker_on(gate).run_once())
        await asyncio.to_thread(gate.asked.wait)
        await reward_by(bank, user, Feedback(0.25, "user", case_id=case_id))
        gate.go.set()
        await late
    row = await one(bank, user, case_id)
    assert (row.status, row.error_count, row.reward, row.reward_source) == ("ready", 2, 0.25, "user")
    earned = select(decisions.c.reward, decisions.c.reward_source).where(decisions.c.user_sub == user)
    assert await bank.read(user, earned) == [(0.25, "user")]


@pytest.mark.parametrize("named", ["the first run", "the retrieval"])
async def test_feedback_that_came_after_a_run_is_not_of_the_next_run_of_its_retrieval(
    named: str, bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    slate = await Reader(bank.database, worker_on(server).embedder).retrieve(
        user, datetime.now(UTC), Question(CaseSearch(agent_key=AGENT, query="leaves"))
    )
    first = await keep(bank, user, task="rake", plan=["rake"], retrieval_id=slate.retrieval_id)
    await drain(worker_on(server))
    subject = {"the first run": {"case_id": first}, "the retrieval": {"decision_id": slate.retrieval_id}}
    await reward_by(bank, user, Feedback(1.0, "user", **subject[named]))
    failed = {"outcome": "failure", "retrieval_id": slate.retrieval_id}
    second = await keep(bank, user, task="sweep", plan=["sweep"], **failed)
    await drain(worker_on(server))
    row = await one(bank, user, second)
    assert (row.reward, row.reward_source) == (0.0, "heuristic")


async def test_feedback_before_a_run_reaches_it_whatever_the_name_of_the_service_that_gave_it(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    slate = await Reader(bank.database, worker_on(server).embedder).retrieve(
        user, datetime.now(UTC), Question(CaseSearch(agent_key=AGENT, query="leaves"))
    )
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await give_feedback(connection, user, "worker", Feedback(0.0, "user", decision_id=slate.retrieval_id))
    case_id = await keep(bank, user, task="rake", retrieval_id=slate.retrieval_id)
    await drain(worker_on(server))
    row = await one(bank, user, case_id)
    assert (row.reward, row.reward_source) == (0.0, "user")


async def test_a_reward_that_came_with_a_run_is_not_of_the_next_run_of_its_retrieval(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    slate = await Reader(bank.database, worker_on(server).embedder).retrieve(
        user, datetime.now(UTC), Question(CaseSearch(agent_key=AGENT, query="leaves"))
    )
    of_first = {"reward": 0.0, "reward_source": "user", "retrieval_id": slate.retrieval_id}
    await keep(bank, user, task="rake", plan=["rake"], **of_first)
    await drain(worker_on(server))
    second = await keep(bank, user, task="sweep", plan=["sweep"], retrieval_id=slate.retrieval_id)
    await drain(worker_on(server))
    row = await one(bank, user, second)
    assert (row.reward, row.reward_source) == (1.0, "heuristic")


async def test_the_slate_earns_the_corrected_guess(bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str):
    (shown,) = await bank.add(user, {"task": "rake the leaves"})
    slate = await Reader(bank.database, worker_on(server).embedder).retrieve(
        user, datetime.now(UTC), Question(CaseSearch(agent_key=AGENT, query="leaves"))
    )
    await keep(bank, user, tool_traces=MISSED, retrieval_id=slate.retrieval_id)
    await drain(worker_on(server))
    earned = select(decisions.c.reward, decisions.c.reward_source).where(decisions.c.user_sub == user)
    assert await bank.read(user, earned) == [(0.5, "heuristic")]
    record = await one(bank, user, shown)
    assert (record.reuse_count, record.reuse_reward) == (1, 0.5)


async def test_a_repeat_counts_on_the_kept_case_with_its_corrected_guess(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    (kept,) = [await keep(bank, user, plan=["cancel"], tool_traces=[{"tool": "cancel_order", "output": "cancelled"}])]
    await drain(worker_on(server))
    repeat = await keep(bank, user, plan=["cancel"], tool_traces=MISSED)
    await drain(worker_on(server))
    row, merged = await one(bank, user, kept), await one(bank, user, repeat)
    assert (row.occurrences, row.error_count, row.reward) == (2, 0, 0.75)
    assert (merged.status, merged.merged_into, merged.error_count, merged.reward) == ("merged", kept, 2, 0.5)
