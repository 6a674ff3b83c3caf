"""A sick embedder costs meaning, never an answer or a case; once it is well, all that waited is found by meaning."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from app.auth.tokens import issue_token
from app.main import create_app
from app.settings import Settings
from tests.fakes.openai_server import Fault, OpenAIServer

SECRET = "a secret of at least thirty-two bytes"
PATIENCE = 1200
"""How often `until` looks, twenty times a second: a breaker may keep the embedder unasked for 15 s."""

SICK = [
    Fault.WRONG_DIMENSION,
    Fault.TOO_FEW,
    Fault.HOLE_IN_INDEX,
    Fault.NAN,
    Fault.STATUS_429_WAIT_240,
    Fault.STATUS_500,
    Fault.HTML,
    Fault.NEVER,
    Fault.HANGS_UP,
]


@pytest.fixture(scope="module")
def running_embedder() -> Iterator[OpenAIServer]:
    with OpenAIServer(dimension=64) as server:
        yield server


@pytest.fixture
def embedder(running_embedder: OpenAIServer) -> Iterator[OpenAIServer]:
    """The embedding server, well before and after."""
    running_embedder.reset()
    yield running_embedder
    running_embedder.reset()


@pytest.fixture(scope="module")
async def client(database_url: str, running_embedder: OpenAIServer) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a service whose vectors come from that server, and that soon gives up on it and soon tries again."""
    settings = Settings(
        database_url=database_url,
        jwt_secret=SECRET,
        master_key="5" * 64,
        embedder="openai",
        openai_base_url=running_embedder.base_url,
        openai_embedding_model="hashed-words",
        openai_embedding_dimension=running_embedder.dimension,
        timeouts_s={"embedder_request": 0.3, "embedder": 0.5},
        worker_pace={"backoff_s": 1, "attempts": 100},
        explore=False,
    )
    now = datetime.now(UTC)
    token = issue_token(SECRET, user="alice", issuer="casebank", audience="casebank", ttl=timedelta(hours=1), now=now)
    app = create_app(settings)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(
            transport=httpx.ASGITransport(app),
            base_url="http://localhost",
            headers={"Authorization": f"Bearer {token}"},
        ) as client,
    ):
        yield client


async def until(found: Callable[[], Awaitable[bool]]) -> None:
    for _ in range(PATIENCE):
        if await found():
            return
        await asyncio.sleep(0.05)
    raise AssertionError("it never came")


async def retain(client: httpx.AsyncClient, agent: str, task: str) -> str:
    answer = await client.post("/v1/retain", json={"agent": agent, "task": task, "outcome": "success"})
    assert answer.status_code == 202, answer.text
    return answer.json()["case_id"]


async def retrieve(client: httpx.AsyncClient, agent: str, query: str) -> dict[str, Any]:
    answer = await client.post("/v1/retrieve", json={"agent": agent, "query": query})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def retrieve_by_meaning(client: httpx.AsyncClient, agent: str, query: str) -> dict[str, Any]:
    """Returns the first answer that has a vector behind it: the embedder may be slow on a busy machine."""
    answer: dict[str, Any] = {}

    async def has_meaning() -> bool:
        answer.update(await retrieve(client, agent, query))
        return answer["mode"] == "hybrid"

    await until(has_meaning)
    return answer


async def status(client: httpx.AsyncClient, case_id: str) -> str:
    return (await client.get(f"/v1/cases/{case_id}")).json()["status"]


async def worked(client: httpx.AsyncClient, case_id: str) -> None:
    async def is_ready() -> bool:
        return await status(client, case_id) == "ready"

    await until(is_ready)


@pytest.mark.parametrize("fault", SICK, ids=lambda fault: fault.name.lower())
async def test_a_sick_embedder_loses_nothing_and_keywords_answer(
    client: httpx.AsyncClient, embedder: OpenAIServer, fault: Fault
):
    agent = fault.name
    known = await retain(client, agent, "renew the certificate of the gateway")
    await worked(client, known)

    embedder.fault = fault
    waiting = await retain(client, agent, "rotate the password of the warehouse")
    await until(lambda: _asked(embedder))
    by_words = await retrieve(client, agent, "gateway certificate")
    assert (by_words["mode"], by_words["degraded"]) == ("keyword", ["embedder"])
    assert [case["case_id"] for case in by_words["cases"]] == [known]
    assert by_words["cases"][0]["semantic_rank"] is None
    assert await status(client, waiting) == "pending"

    embedder.fault = None
    await worked(client, waiting)
    by_meaning = await retrieve_by_meaning(client, agent, "warehouse password")
    assert by_meaning["degraded"] == []
    assert by_meaning["cases"][0]["case_id"] == waiting
    assert by_meaning["cases"][0]["semantic_rank"] == 1


async def _asked(embedder: OpenAIServer) -> bool:
    return bool(embedder.count)


async def test_without_the_embedder_an_empty_bank_is_empty_and_the_answer_says_what_was_missing(
    client: httpx.AsyncClient, embedder: OpenAIServer
):
    embedder.fault = Fault.HTML
    nothing = await retrieve(client, "nobody's", "gateway certificate")
    assert (nothing["mode"], nothing["degraded"], nothing["cases"]) == ("empty", ["embedder"], [])


async def test_vectors_that_come_shuffled_end_up_with_their_own_cases(
    client: httpx.AsyncClient, embedder: OpenAIServer
):
    embedder.fault = Fault.HTML  # while it is out, enough cases come for a batch of several
    tasks = [f"{what} number {number}" for what in ("paint the fence", "bake bread") for number in range(10)]
    cases = {task: await retain(client, "shuffled", task) for task in tasks}
    embedder.requests.clear()
    embedder.fault = Fault.SHUFFLED
    for case_id in cases.values():
        await worked(client, case_id)
    assert max(len(request.payload["input"]) for request in embedder.requests) > 1
    for task, case_id in cases.items():
        found = (await retrieve_by_meaning(client, "shuffled", task))["cases"]
        similarity = {case["case_id"]: case["similarity"] for case in found}
        assert similarity[case_id] == pytest.approx(1, abs=1e-3)


async def test_a_whole_stream_of_retains_outlives_an_outage(client: httpx.AsyncClient, embedder: OpenAIServer):
    embedder.fault = Fault.HTML
    cases = [await retain(client, "stream", f"pack parcel number {n}") for n in range(40)]
    assert {await status(client, case_id) for case_id in cases} == {"pending"}
    embedder.fault = None
    for case_id in cases:
        await worked(client, case_id)
    await retrieve_by_meaning(client, "stream", "parcel number 7")
