"""The worker with an embedder that fails: cases wait and are finished later; one bad text takes no other down."""

import asyncio
from contextlib import suppress
from typing import Any

import asyncpg
import numpy as np
import pytest
from sqlalchemy import func, select

from retrieval.tables.cases import case_embeddings, cases
from retrieval.tables.procedures import procedures
from tests.fakes.openai_server import Fault, OpenAIServer, error, vector
from tests.writer.conftest import (
    AGENT,
    DIMENSION,
    IMPATIENT,
    PACE,
    PATIENT,
    Bank,
    MakeWorker,
    Picky,
    drain,
    keep,
    states,
    wake_all,
)
from writer.queue.queue import Pace
from writer.retain.retain import retain
from writer.run import FinishedRun, ProcedureData

WRONG_ANSWERS = (
    Fault.WRONG_DIMENSION,
    Fault.TOO_FEW,
    Fault.TOO_MANY,
    Fault.NAN,
    Fault.ZERO_VECTOR,
    Fault.HTML,
)
NO_ANSWERS = (
    Fault.STATUS_401,
    Fault.STATUS_429,
    Fault.STATUS_429_WAIT_240,
    Fault.STATUS_500,
    Fault.NEVER,
    Fault.HANGS_UP,
)


@pytest.mark.parametrize("fault", WRONG_ANSWERS + NO_ANSWERS)
async def test_whatever_the_embedder_answers_the_cases_wait_and_are_finished_later(  # noqa: PLR0913, PLR0917 - fixtures
    fault: Fault, bank: Bank, server: OpenAIServer, worker_on: MakeWorker, owner: asyncpg.Connection, user: str
):
    worker = worker_on(server, patience=IMPATIENT if fault is Fault.NEVER else PATIENT)
    for task in ("water the garden", "mow the lawn"):
        await keep(bank, user, task)
    server.fault = fault
    assert await worker.run_once() == 2
    for row in await states(bank, user):
        assert (row.status, row.attempts, row.lease_token) == ("pending", 1, None)
        assert row.last_error not in {None, "EmbedderMisbehaved"}  # which would be the text's fault
    assert (await bank.counts(user))["case_embeddings"] == 0
    assert await worker.run_once() == 0
    server.fault = None
    await wake_all(owner)
    await drain(worker_on(server))
    assert [(row.status, row.last_error) for row in await states(bank, user)] == [("ready", None)] * 2
    await vectors_are_right(bank, user)


@pytest.mark.parametrize("fault", [Fault.WRONG_DIMENSION, Fault.STATUS_400])
async def test_an_embedder_that_is_ill_for_long_costs_no_case_its_place_and_no_text_its_vector(  # noqa: PLR0913, PLR0917 - fixtures
    fault: Fault, bank: Bank, server: OpenAIServer, worker_on: MakeWorker, owner: asyncpg.Connection, user: str
):
    worker = worker_on(server)
    await keep(bank, user, "water the garden")
    server.fault = fault
    for _ in range(PACE.max_attempts + 1):
        await worker.run_once()
        await wake_all(owner)
    assert [(row.status, row.attempts) for row in await states(bank, user)] == [("pending", 1)]
    server.fault = None
    await drain(worker)
    await vectors_are_right(bank, user)


async def vectors_are_right(bank: Bank, user: str) -> None:
    """Each case has one vector, and it is the one of its own task."""
    joined = select(cases.c.task, case_embeddings.c.embedding).join(
        case_embeddings,
        (case_embeddings.c.user_sub == cases.c.user_sub) & (case_embeddings.c.case_id == cases.c.id),
    )
    rows = await bank.read(user, joined)
    assert len(rows) == (await bank.counts(user))["cases"]
    for row in rows:
        right = np.array(vector(row.task, DIMENSION))
        assert np.allclose(row.embedding, right / np.linalg.norm(right), atol=1e-6)


async def test_vectors_that_come_in_another_order_go_to_their_own_cases(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    for task in ("water the garden", "mow the lawn", "rake the leaves"):
        await keep(bank, user, task)
    server.fault = Fault.SHUFFLED
    await worker_on(server).run_once()
    assert [row.status for row in await states(bank, user)] == ["ready"] * 3
    await vectors_are_right(bank, user)


async def test_a_task_that_has_no_vector_is_ready_all_the_same(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    run = FinishedRun.model_validate({"agent": AGENT, "task": "water", "plan": ["turn the tap"]})
    blank = run.model_copy(update={"task": "   "})  # which an older version took in
    await retain(bank.database, bank.keyring, blank, bank.author(user))
    await keep(bank, user, "mow the lawn")
    await drain(worker_on(server))
    assert [row.status for row in await states(bank, user)] == ["ready", "ready"]
    assert (await bank.counts(user))["case_embeddings"] == 1


async def test_a_text_with_no_right_answer_takes_no_other_case_down(
    bank: Bank, worker_on: MakeWorker, owner: asyncpg.Connection, user: str
):
    with Picky(DIMENSION) as server:
        worker = worker_on(server)
        for task in ("water the garden", "pour the poison", "mow the lawn", "rake the leaves"):
            await keep(bank, user, task)
        await worker.run_once()
        rows = {row.task: row.status for row in await states(bank, user)}
        assert rows.pop("pour the poison") == "pending"
        assert set(rows.values()) == {"ready"}
        for _ in range(1, PACE.max_attempts):
            await wake_all(owner)
            await worker.run_once()
    rows = {row.task: row.status for row in await states(bank, user)}
    assert rows.pop("pour the poison") == "dead"
    assert set(rows.values()) == {"ready"}


async def test_a_text_that_the_embedder_refuses_is_kept_at_once_and_found_by_its_words(
    bank: Bank, worker_on: MakeWorker, user: str
):
    case_id = await keep(bank, user, "pour the poison")
    with Refusing(DIMENSION) as server:
        assert await worker_on(server).run_once() == 1
    (row,) = await states(bank, user)
    assert (row.status, row.last_error) == ("ready", None)
    assert (await bank.counts(user))["case_embeddings"] == 0
    words = select(cases.c.id).where(cases.c.search_vector.op("@@")(func.plainto_tsquery("english", "poison")))
    assert [tuple(each) for each in await bank.read(user, words)] == [(case_id,)]


class Refusing(OpenAIServer):
    """Refuses to embed the word."""

    def _embeddings(self, payload: dict[str, Any], fault: Fault | None) -> Any:
        refused = "poison" in str(payload["input"])
        return error(400, "this word is not embedded") if refused else super()._embeddings(payload, fault)


async def test_a_trigger_that_the_embedder_refuses_costs_its_own_vector_alone(
    bank: Bank, worker_on: MakeWorker, owner: asyncpg.Connection, user: str
):
    names = [*ProcedureData.model_fields]
    record = dict.fromkeys(names, "poison") | {"learned_procedure_steps": ["a step"], "critical_contextual_cues": []}
    with Picky(DIMENSION) as server:
        await keep(bank, user, "water the garden", procedure={"data": record})
        await keep(bank, user, "mow the lawn", plan=["start the mower"])
        await worker_on(server).run_once()
    assert [row.status for row in await states(bank, user)] == ["ready", "ready"]
    assert (await bank.counts(user))["case_embeddings"] == 2
    mine = select(procedures.c.trigger, procedures.c.embedding_model).where(procedures.c.user_sub == user)
    assert dict(tuple(row) for row in await bank.read(user, mine)) == {
        "poison": None,
        "mow the lawn": f"fake@{DIMENSION}",
    }


async def test_a_case_that_cannot_be_finished_does_not_stop_those_behind_it(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, owner: asyncpg.Connection, user: str
):
    broken = await keep(bank, user, "water the garden")
    await owner.execute("UPDATE cases SET payload = 'rubbish' WHERE id = $1", broken)
    whole = await keep(bank, user, "mow the lawn")
    assert await worker_on(server).run_once() == 2
    assert {row.id: (row.status, row.last_error) for row in await states(bank, user)} == {
        broken: ("pending", "SealBroken"),
        whole: ("ready", None),
    }
    assert (await bank.counts(user))["case_embeddings"] == 1


async def test_an_outage_leaves_the_running_worker_alive(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    server.script(Fault.STATUS_500, Fault.HTML, None)
    worker = worker_on(server, Pace(backoff_s=0.001, poll_s=0.01))
    running = asyncio.create_task(worker.run())
    await keep(bank, user)
    worker.wake()
    async with asyncio.timeout(60):
        while (await states(bank, user))[0].status != "ready":  # noqa: ASYNC110 - the worker tells nobody
            await asyncio.sleep(0.01)
    assert not running.done()
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    assert (await states(bank, user))[0].attempts == 3
