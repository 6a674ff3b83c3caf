"""The worker: every retained run becomes one result, whatever the embedder, other workers and its own pace do."""

import asyncio
import json
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import numpy as np
import pytest
import uuid_utils.compat as uuids
from prometheus_client import REGISTRY
from sqlalchemy import select

from app.providers.openai import Endpoint, OpenAIEmbedder, Patience
from retrieval.ranking.slate import Question
from retrieval.retrieve import Reader
from retrieval.schema import case_embeddings, cases, procedures, rewards
from retrieval.search.candidates import Search
from tests.fakes.openai_server import Fault, OpenAIServer, vector
from tests.writer.conftest import AGENT, Bank
from writer.errors import IdempotencyConflict
from writer.privacy.seal import unseal
from writer.retain.retain import retain
from writer.rights.edit import delete_case, set_tags
from writer.run import FinishedRun, ProcedureData
from writer.worker import queue
from writer.worker.worker import Pace, Worker

DIMENSION = 16
PACE = Pace(backoff_s=1_000, backoff_max_s=10_000, max_attempts=3)
"""A failed case comes back after the test, unless the test says otherwise."""
PATIENT = Patience(timeout_s=60, budget_s=60, attempts=1, failures_to_open=10**6)
IMPATIENT = Patience(timeout_s=0.3, budget_s=1, attempts=1)
"""For a server that never answers; one that does may be slow on a busy machine."""


@pytest.fixture
async def owner(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    """The owner of the tables, whom row-level security does not bind; leaves an empty queue."""
    connection = await asyncpg.connect(database_url.replace("+asyncpg", ""))
    yield connection
    await connection.execute("DELETE FROM cases WHERE status IN ('pending', 'dead')")
    await connection.close()


@pytest.fixture(scope="module")
def shared_server() -> Iterator[OpenAIServer]:
    with OpenAIServer(DIMENSION) as server:
        yield server


@pytest.fixture
def server(shared_server: OpenAIServer) -> OpenAIServer:
    shared_server.reset()
    return shared_server


class Picky(OpenAIServer):
    """Refuses every request with the word in it."""

    def _embeddings(self, payload: dict[str, Any], fault: Fault | None) -> Any:
        return super()._embeddings(payload, Fault.WRONG_DIMENSION if "poison" in str(payload["input"]) else fault)


class Gated(OpenAIServer):
    """Answers when it is told to."""

    def __init__(self) -> None:
        super().__init__(DIMENSION)
        self.asked, self.go = threading.Event(), threading.Event()

    def __exit__(self, *error: object) -> None:
        self.go.set()
        super().__exit__(*error)

    def _embeddings(self, payload: dict[str, Any], fault: Fault | None) -> Any:
        self.asked.set()
        self.go.wait()
        return super()._embeddings(payload, fault)


MakeWorker = Callable[..., Worker]


@pytest.fixture
async def worker_on(bank: Bank, owner: asyncpg.Connection) -> AsyncIterator[MakeWorker]:
    """Makes workers whose vectors come from a server."""
    embedders: list[OpenAIEmbedder] = []

    def make(server: OpenAIServer, pace: Pace = PACE, patience: Patience = PATIENT) -> Worker:
        endpoint = Endpoint(base_url=server.base_url, model="fake", dimension=DIMENSION)
        embedders.append(OpenAIEmbedder(endpoint, patience))
        return Worker(bank.database, embedders[-1], bank.keyring, pace=pace)

    yield make
    for embedder in embedders:
        await embedder.aclose()


async def keep(bank: Bank, user: str, task: str = "water the garden", key: str | None = None, **more: Any) -> UUID:
    run = FinishedRun.model_validate({"agent": AGENT, "task": task, "outcome": "success", **more})
    return (await retain(bank.database, bank.keyring, run, bank.author(user), key)).case_id


async def drain(worker: Worker) -> None:
    while await worker.run_once():
        pass


async def states(bank: Bank, user: str) -> list[Any]:
    return await bank.read(user, select(cases).where(cases.c.user_sub == user).order_by(cases.c.id))


async def wake_all(owner: asyncpg.Connection) -> None:
    await owner.execute("UPDATE cases SET available_at = now() WHERE status = 'pending'")


def lost_leases() -> float:
    return REGISTRY.get_sample_value("casebank_worker_cases_total", {"how": "LeaseLost"}) or 0


# Many at once


async def test_twenty_equal_retains_with_one_key_are_one_case(bank: Bank, owner: asyncpg.Connection, user: str):
    ids = await asyncio.gather(*(keep(bank, user, key="monday") for _ in range(20)))
    assert len(set(ids)) == 1
    assert [row.id for row in await states(bank, user)] == ids[:1]
    assert (await bank.counts(user))["audit"] == 1


async def test_of_twenty_different_retains_with_one_key_one_is_kept(bank: Bank, owner: asyncpg.Connection, user: str):
    runs = (keep(bank, user, f"task {number}", key="monday") for number in range(20))
    answers = await asyncio.gather(*runs, return_exceptions=True)
    (row,) = await states(bank, user)
    assert Counter(type(answer).__name__ for answer in answers) == {"UUID": 1, "IdempotencyConflict": 19}
    assert [answer for answer in answers if not isinstance(answer, IdempotencyConflict)] == [row.id]


async def test_twenty_equal_retains_without_a_key_become_one_ready_case_that_counts_them(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    ids = await asyncio.gather(*(keep(bank, user) for _ in range(20)))
    assert len(set(ids)) == 20
    await asyncio.gather(*(drain(worker_on(server, replace(PACE, batch=3))) for _ in range(4)))
    rows = await states(bank, user)
    (kept,) = [row for row in rows if row.status == "ready"]
    assert kept.occurrences == 20
    assert {(row.status, row.merged_into) for row in rows if row is not kept} == {("merged", kept.id)}
    assert len(rows) == 20
    assert (await bank.counts(user))["case_embeddings"] == 1


async def test_several_workers_finish_every_case_of_every_user_once(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    users = [f"{user}-{letter}" for letter in "abc"]
    await asyncio.gather(*(keep(bank, name, f"task {number}") for name in users for number in range(20)))
    await asyncio.gather(*(drain(worker_on(server, replace(PACE, batch=4))) for _ in range(4)))
    for name in users:
        assert Counter((row.status, row.attempts) for row in await states(bank, name)) == {("ready", 1): 20}
        assert (await bank.counts(name))["case_embeddings"] == 20
    asked = Counter(text for request in server.requests for text in request.payload["input"])
    assert set(asked.values()) == {len(users)}


async def test_equal_runs_of_two_users_are_not_merged(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    await keep(bank, user)
    await keep(bank, f"{user}-b")
    await drain(worker_on(server))
    assert [row.status for name in (user, f"{user}-b") for row in await states(bank, name)] == ["ready", "ready"]


async def test_runs_that_differ_in_outcome_plan_kind_or_agent_are_not_merged(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    for difference in ({}, {"outcome": "failure"}, {"plan": ["turn the tap"]}, {"kind": "tool"}, {"agent": "other"}):
        await keep(bank, user, **difference)
    await drain(worker_on(server))
    assert {(row.status, row.occurrences) for row in await states(bank, user)} == {("ready", 1)}


async def test_the_same_words_in_another_case_and_spacing_are_the_same_run(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    await keep(bank, user, "water the garden", plan=["turn the tap"])
    await keep(bank, user, " Water  the\nGARDEN ", plan=["Turn the  tap"])
    await drain(worker_on(server))
    assert [(row.status, row.occurrences) for row in await states(bank, user)] == [("ready", 2), ("merged", 1)]


# A worker that comes too late


async def test_a_worker_paused_past_its_lease_cannot_finish_what_another_finished(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    await bank.add(user, {"task": "rake the leaves"})
    search = Search(agent_key=AGENT, query="leaves")
    reader = Reader(bank.database, worker_on(server).embedder)
    slate = await reader.retrieve(user, datetime.now(UTC), Question(search))
    case_id = await keep(bank, user, retrieval_id=slate.retrieval_id)
    with Gated() as gate:
        late = asyncio.create_task(worker_on(gate, replace(PACE, lease=timedelta(0))).run_once())
        await asyncio.to_thread(gate.asked.wait)
        assert await worker_on(server).run_once() == 1
        (before,) = [row for row in await states(bank, user) if row.id == case_id]
        lost = lost_leases()
        gate.go.set()
        assert await late == 1
    (after,) = [row for row in await states(bank, user) if row.id == case_id]
    assert lost_leases() == lost + 1
    assert (before.status, before.attempts) == ("ready", 2)
    assert after == before
    assert len(await bank.read(user, select(case_embeddings).where(case_embeddings.c.case_id == case_id))) == 1
    assert len(await bank.read(user, select(rewards).where(rewards.c.decision_id == slate.retrieval_id))) == 1


async def test_a_paused_worker_that_then_fails_does_not_hand_back_what_another_finished(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    await keep(bank, user)
    with Gated() as gate:
        late = asyncio.create_task(worker_on(gate, replace(PACE, lease=timedelta(0))).run_once())
        await asyncio.to_thread(gate.asked.wait)
        await worker_on(server).run_once()
        gate.dimension += 1
        gate.go.set()
        await late
    (row,) = await states(bank, user)
    assert (row.status, row.last_error) == ("ready", None)


async def test_a_case_deleted_while_the_worker_holds_it_stays_deleted(bank: Bank, worker_on: MakeWorker, user: str):
    case_id = await keep(bank, user)
    with Gated() as gate:
        late = asyncio.create_task(worker_on(gate).run_once())
        await asyncio.to_thread(gate.asked.wait)
        async with bank.database.as_user(user, datetime.now(UTC)) as connection:
            await delete_case(connection, bank.author(user), case_id)
        lost = lost_leases()
        gate.go.set()
        await late
    assert lost_leases() == lost + 1
    counts = await bank.counts(user)
    assert (counts["cases"], counts["case_embeddings"]) == (0, 0)


async def test_a_case_is_nobody_elses_during_its_lease(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    await keep(bank, user)
    with Gated() as gate:
        first = asyncio.create_task(worker_on(gate).run_once())
        await asyncio.to_thread(gate.asked.wait)
        assert await worker_on(server).run_once() == 0
        gate.go.set()
        await first
    assert [(row.status, row.attempts) for row in await states(bank, user)] == [("ready", 1)]


# An embedder that fails

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
        assert row.last_error
        assert (row.last_error == "EmbedderMisbehaved") == (fault in WRONG_ANSWERS)
    assert (await bank.counts(user))["case_embeddings"] == 0
    assert await worker.run_once() == 0
    server.fault = None
    await wake_all(owner)
    await drain(worker_on(server))
    assert [(row.status, row.last_error) for row in await states(bank, user)] == [("ready", None)] * 2
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


async def test_the_delay_doubles_with_each_failure_up_to_its_bound(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, owner: asyncpg.Connection, user: str
):
    worker = worker_on(server, Pace(backoff_s=1_000, backoff_max_s=4_000, max_attempts=6))
    case_id = await keep(bank, user)
    server.fault = Fault.STATUS_500
    for longest in (1_000, 2_000, 4_000, 4_000, 4_000):
        before = await owner.fetchval("SELECT clock_timestamp()")
        await worker.run_once()
        after = await owner.fetchval("SELECT clock_timestamp()")
        available = await owner.fetchval("SELECT available_at FROM cases WHERE id = $1", case_id)
        assert before + timedelta(seconds=longest / 2) <= available <= after + timedelta(seconds=longest)
        await wake_all(owner)


async def test_a_case_that_keeps_failing_is_dead_and_a_requeue_brings_it_back(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, owner: asyncpg.Connection, user: str
):
    worker = worker_on(server)
    await keep(bank, user)
    server.fault = Fault.NAN
    for _ in range(PACE.max_attempts):
        assert await worker.run_once() == 1
        await wake_all(owner)
    (row,) = await states(bank, user)
    assert (row.status, row.attempts) == ("dead", PACE.max_attempts)
    assert row.last_error
    server.fault = None
    assert await worker.run_once() == 0
    async with bank.database.as_worker() as connection:
        raised = (await connection.execute(queue.raise_the_dead(f"{user}-b"))).all()
        assert raised == []
        raised = (await connection.execute(queue.raise_the_dead(user))).all()
    assert [row.id for row in raised] == [row.id]
    await drain(worker)
    (row,) = await states(bank, user)
    assert (row.status, row.attempts, row.last_error) == ("ready", 1, None)


async def test_an_outage_however_long_kills_no_case(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, owner: asyncpg.Connection, user: str
):
    worker = worker_on(server)
    await keep(bank, user)
    server.fault = Fault.STATUS_500
    for _ in range(PACE.max_attempts + 2):
        assert await worker.run_once() == 1
        await wake_all(owner)
    (row,) = await states(bank, user)
    assert (row.status, row.last_error) == ("pending", "_NoAnswer")
    server.fault = None
    await drain(worker)
    assert [row.status for row in await states(bank, user)] == ["ready"]


async def test_a_case_that_takes_its_workers_down_is_dead_after_as_many(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    await keep(bank, user)
    for _ in range(PACE.max_attempts):  # a worker that claims and is never heard of again
        async with bank.database.as_worker() as connection:
            claimed = await connection.execute(queue.claim(uuids.uuid7(), timedelta(0), 16))
            assert len(claimed.all()) == 1
    assert await worker_on(server).run_once() == 0
    (row,) = await states(bank, user)
    assert (row.status, row.last_error) == ("dead", "the worker died with it")


async def test_a_task_that_has_no_vector_is_ready_all_the_same(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    await keep(bank, user, "   ", plan=["turn the tap"])
    await keep(bank, user, "mow the lawn")
    await drain(worker_on(server))
    assert [row.status for row in await states(bank, user)] == ["ready", "ready"]
    assert (await bank.counts(user))["case_embeddings"] == 1


# Poison


async def test_a_text_that_the_embedder_refuses_takes_no_other_case_down(
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
    assert dict(tuple(row) for row in await bank.read(user, mine)) == {"poison": None, "mow the lawn": "fake"}


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
    async with asyncio.timeout(30):
        while (await states(bank, user))[0].status != "ready":  # noqa: ASYNC110 - the worker tells nobody
            await asyncio.sleep(0.01)
    assert not running.done()
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    assert (await states(bank, user))[0].attempts == 3


# Secrets

MARK = "xylophone-in-the-attic"
SECRETS = [
    "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2,
    "AKIA" + "J7QZ4M2XK9P3W8RV",
    "ada.lovelace@analytical.example",
    "4111 1111 1111 1111",
    "hunter2-but-longer",
]
LEAK = f"key {SECRETS[0]} and {SECRETS[1]}, mail {SECRETS[2]}, card {SECRETS[3]}, password={SECRETS[4]} end"


async def dump(owner: asyncpg.Connection) -> str:
    """Everything that the database holds, as text; bytes as hexadecimal digits."""
    tables = await owner.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    rows = [await owner.fetch(f"SELECT t::text AS row FROM {table['tablename']} t") for table in tables]  # noqa: S608
    return "\n".join(row["row"] for table in rows for row in table)


async def test_sealed_columns_hold_no_plaintext(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, owner: asyncpg.Connection, user: str
):
    # the names of arguments are told on purpose, by tool memory and by lessons; what is inside them is not
    traces = [{"tool": "hose", "input": {"into": {MARK: MARK}}, "output": MARK}]
    case_id = await keep(
        bank,
        user,
        tool_traces=traces,
        prompt_snapshot={"system": MARK},
        turns=[{"role": "user", "content": MARK}],
    )
    await drain(worker_on(server))
    payload = await owner.fetchval("SELECT payload FROM cases WHERE id = $1", case_id)
    assert payload
    everything = await dump(owner)
    assert str(case_id) in everything
    assert MARK not in everything
    assert MARK.encode().hex() not in everything
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        key = await bank.keyring.find(connection, user)
    assert key is not None
    opened = unseal(payload, key.key, user_sub=user, case_id=case_id)
    assert opened["prompt_snapshot"] == {"system": MARK}
    assert key.key.hex() not in everything


async def test_no_secret_reaches_the_database_the_embedder_or_the_log(  # noqa: PLR0913, PLR0917 - fixtures
    bank: Bank,
    server: OpenAIServer,
    worker_on: MakeWorker,
    owner: asyncpg.Connection,
    user: str,
    capfd: pytest.CaptureFixture[str],
):
    told = ["procedure_name", "semantic_description", "initial_failure_summary", "identified_root_cause"]
    lesson = dict.fromkeys((*told, "successful_intervention", "example_scenario_abstract"), LEAK)
    case_id = await keep(
        bank,
        user,
        LEAK,
        plan=[LEAK],
        tags=[SECRETS[0], SECRETS[2]],
        tool_traces=[{"tool": f"curl {SECRETS[0]}", "input": {"a": [LEAK]}, "output": {LEAK: LEAK}}],
        turns=[{"role": SECRETS[2], "content": LEAK}],
        prompt_snapshot={"system": LEAK},
        procedure={"data": {**lesson, "procedure_name": SECRETS[0], "learned_procedure_steps": [LEAK]}},
    )
    worker = worker_on(server)
    await drain(worker)
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        key = await bank.keyring.find(connection, user)
        await set_tags(connection, bank.author(user), case_id, ["seen"])
    (row,) = await states(bank, user)
    assert row.status == "ready"
    assert key is not None
    opened = json.dumps(unseal(row.payload, key.key, user_sub=user, case_id=case_id))
    sent = str([request.payload for request in server.requests])
    assert "end" in opened  # what stood around the secrets is there
    assert "end" in sent
    places = {
        "database": await dump(owner),
        "payload": opened,
        "embedder": sent,
        "log": str(capfd.readouterr()),
    }
    for place, text in places.items():
        for secret in SECRETS:
            assert secret not in text, place
            assert secret.encode().hex() not in text, place
