"""The two embedders keep the port's promises, whatever the texts and whatever the server."""

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import numpy as np
import pytest

from app.providers.openai import Endpoint, OpenAIEmbedder, Patience
from app.providers.wordllama import MAX_CHARS, WordLlamaEmbedder
from retrieval.errors import (
    EmbedderError,
    EmbedderMisbehaved,
    EmbedderRefused,
    EmbedderUnavailable,
    TextNotEmbeddable,
)
from retrieval.ports import Embedder, embed_each
from tests.fakes.openai_server import Fault, OpenAIServer

KEY = "sk-made-up"
QUICK = Patience(timeout_s=0.2, budget_s=1.0, attempts=3, wait_initial_s=0.01, wait_max_s=0.02, cooldown_s=30)
TEXTS = ["reset the user's password", "deploy the staging cluster", "write a haiku"]


def assert_unit(rows: np.ndarray, count: int, dimension: int):
    assert rows.shape == (count, dimension)
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="module")
def running_server() -> Iterator[OpenAIServer]:
    with OpenAIServer(dimension=32) as server:
        yield server


@pytest.fixture
def server(running_server: OpenAIServer) -> OpenAIServer:
    running_server.reset()
    return running_server


@pytest.fixture
def clock() -> Clock:
    return Clock()


def endpoint(server: OpenAIServer, **changes: Any) -> Endpoint:
    settings = {"base_url": server.base_url, "model": "hashed-words", "dimension": server.dimension, "api_key": KEY}
    return Endpoint(**(settings | changes))


@pytest.fixture
async def remote(server: OpenAIServer, clock: Clock) -> AsyncIterator[OpenAIEmbedder]:
    embedder = OpenAIEmbedder(endpoint(server), QUICK, clock)
    yield embedder
    await embedder.aclose()


@pytest.fixture(scope="module")
def local() -> WordLlamaEmbedder:
    return WordLlamaEmbedder()


@pytest.fixture(params=["local", "remote"])
def embedder(request: pytest.FixtureRequest) -> Embedder:
    return request.getfixturevalue(request.param)


# The port, which both keep


async def test_each_text_gets_a_unit_vector(embedder: Embedder):
    assert_unit(await embedder.embed(TEXTS), 3, embedder.dimension)


async def test_no_texts_give_no_rows(embedder: Embedder):
    assert (await embedder.embed([])).shape == (0, embedder.dimension)


async def test_the_same_text_gives_the_same_bytes_alone_and_in_a_batch(embedder: Embedder):
    batch = await embedder.embed([*TEXTS, "long " * 500])
    alone = await embedder.embed(TEXTS[:1])
    assert batch[0].tobytes() == alone[0].tobytes()


async def test_similar_texts_are_nearer_than_others(embedder: Embedder):
    query, near, far = await embedder.embed(["reset my password", TEXTS[0], TEXTS[1]])
    assert query @ near > query @ far


@pytest.mark.parametrize("blank", ["", "   ", "\n\t\u00a0"])
async def test_a_blank_text_is_named_and_not_given_a_vector(embedder: Embedder, blank: str):
    with pytest.raises(TextNotEmbeddable) as caught:
        await embedder.embed([TEXTS[0], blank, TEXTS[1], blank])
    assert caught.value.indices == (1, 3)


async def test_a_blank_text_does_not_lose_the_others(embedder: Embedder):
    first, blank, last = await embed_each(embedder, [TEXTS[0], " ", TEXTS[1]])
    assert blank is None
    assert np.array_equal(np.stack([first, last]), await embedder.embed(TEXTS[:2]))


async def test_blank_texts_alone_are_no_error_for_embed_each(embedder: Embedder):
    assert await embed_each(embedder, ["", " "]) == [None, None]


@pytest.mark.parametrize("odd", ["a\ud800b", "\udfff", "\x00", "ᚠᛇᚻ", "😀", "!!!", "<s>", "\u200b", "字" * 9_000])
async def test_odd_texts_get_unit_vectors(embedder: Embedder, odd: str):
    assert_unit(await embedder.embed([odd]), 1, embedder.dimension)


async def test_ten_megabytes_are_cut_rather_than_read(embedder: Embedder):
    started = time.perf_counter()
    huge = await embedder.embed(["word " * 2_000_000])
    assert time.perf_counter() - started < 1
    assert np.array_equal(huge, await embedder.embed([("word " * 2_000_000)[:MAX_CHARS]]))


# The one in this process


async def test_a_big_batch_does_not_block_the_event_loop(local: WordLlamaEmbedder):
    embedding = asyncio.create_task(local.embed(["a sentence of ordinary length about nothing"] * 5_000))
    turns = 0
    while not embedding.done():
        await asyncio.sleep(0.001)
        turns += 1
    assert turns > 10
    assert_unit(await embedding, 5_000, 256)


async def test_concurrent_batches_do_not_mix(local: WordLlamaEmbedder):
    batches = [[f"task {i} {j}" for j in range(40)] for i in range(8)]
    together = await asyncio.gather(*map(local.embed, batches))
    for batch, rows in zip(batches, together, strict=True):
        assert np.array_equal(rows, await local.embed(batch))


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
def test_serving_imports_no_torch_and_its_peak_stays_small():
    program = (
        "import asyncio, pathlib, re, sys\n"
        "from app.providers.wordllama import WordLlamaEmbedder\n"
        "asyncio.run(WordLlamaEmbedder().embed(['ᚠ' * 9000] * 16))\n"
        "peak = re.search(r'VmHWM:\\s+(\\d+) kB', pathlib.Path('/proc/self/status').read_text())[1]\n"
        "print('torch' in sys.modules, int(peak) // 1024)\n"
    )
    torch, peak_mib = subprocess.check_output([sys.executable, "-c", program], text=True).split()
    assert torch == "False"
    assert int(peak_mib) < 250


# What is sent to a server


async def test_big_batches_are_split_and_come_back_in_order(server: OpenAIServer, clock: Clock):
    texts = [f"text number {i}" for i in range(25)]
    small = OpenAIEmbedder(endpoint(server, batch_size=10), QUICK, clock)
    whole = OpenAIEmbedder(endpoint(server), QUICK, clock)
    assert np.array_equal(await small.embed(texts), await whole.embed(texts))
    assert [len(request.payload["input"]) for request in server.requests] == [10, 10, 5, 25]
    await small.aclose()
    await whole.aclose()


async def test_floats_are_asked_for_and_a_dimension_only_on_request(
    server: OpenAIServer, remote: OpenAIEmbedder, clock: Clock
):
    shortening = OpenAIEmbedder(endpoint(server, ask_dimension=True), QUICK, clock)
    await remote.embed(TEXTS)
    await shortening.embed(TEXTS)
    plain, shortened = (request.payload for request in server.requests)
    assert plain == {"model": "hashed-words", "input": TEXTS, "encoding_format": "float"}
    assert shortened == plain | {"dimensions": 32}
    await shortening.aclose()


@pytest.mark.parametrize(("key", "sent"), [(KEY, KEY), (KEY + "\n", KEY), ("", "none")])
async def test_the_environments_key_is_never_used(
    server: OpenAIServer, monkeypatch: pytest.MonkeyPatch, key: str, sent: str
):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else")
    embedder = OpenAIEmbedder(endpoint(server, api_key=key), QUICK)
    await embedder.embed(TEXTS)
    assert server.requests[0].authorization == f"Bearer {sent}"
    await embedder.aclose()


def test_the_key_is_not_shown_with_the_settings(server: OpenAIServer):
    assert KEY not in repr(endpoint(server))


def test_a_key_that_no_header_can_carry_is_refused_at_the_start_without_quoting_it(server: OpenAIServer):
    with pytest.raises(ValueError, match="HTTP header") as caught:
        OpenAIEmbedder(endpoint(server, api_key="sk-gehëim"))
    assert "sk-" not in str(caught.value)


# What comes back from it

MISBEHAVIOUR = [
    *(Fault.WRONG_DIMENSION, Fault.TOO_FEW, Fault.TOO_MANY, Fault.NO_ITEMS, Fault.DUPLICATE_INDEX, Fault.HOLE_IN_INDEX),
    *(Fault.NAN, Fault.INFINITE, Fault.NULL_NUMBER, Fault.NULL_EMBEDDING, Fault.TEXT_EMBEDDING, Fault.ZERO_VECTOR),
    *(Fault.HUGE_NUMBERS, Fault.HTML, Fault.PROSE, Fault.OTHER_JSON),
]


@pytest.mark.parametrize("fault", MISBEHAVIOUR)
async def test_a_wrong_answer_is_refused_and_not_asked_for_again(
    server: OpenAIServer, remote: OpenAIEmbedder, fault: Fault
):
    server.fault = fault
    with pytest.raises(EmbedderMisbehaved):
        await remote.embed(TEXTS)
    assert server.count == 1


async def test_a_shuffled_answer_is_put_in_order_by_its_index(server: OpenAIServer, remote: OpenAIEmbedder):
    straight = await remote.embed(TEXTS)
    server.fault = Fault.SHUFFLED
    assert np.array_equal(await remote.embed(TEXTS), straight)


@pytest.mark.parametrize(
    ("fault", "advice"),
    [
        (Fault.STATUS_400, "max_chars"),
        (Fault.STATUS_401, "check the API key"),
        (Fault.STATUS_403, "allowed"),
        (Fault.STATUS_404, "base URL"),
    ],
)
async def test_a_refusal_says_what_to_check_and_is_not_retried(
    server: OpenAIServer, remote: OpenAIEmbedder, fault: Fault, advice: str
):
    server.fault = fault
    with pytest.raises(EmbedderRefused if fault is Fault.STATUS_400 else EmbedderUnavailable, match=advice):
        await remote.embed(TEXTS)
    assert server.count == 1


@pytest.mark.parametrize("fault", [Fault.STATUS_401, Fault.STATUS_500, Fault.HTML, Fault.NULL_EMBEDDING])
async def test_no_error_carries_the_key_the_texts_or_the_servers_words(
    server: OpenAIServer, remote: OpenAIEmbedder, fault: Fault
):
    server.fault = fault
    with pytest.raises(EmbedderError) as caught:
        await remote.embed(TEXTS)
    assert KEY not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


# Trying again


@pytest.mark.parametrize(
    "fault",
    [
        Fault.STATUS_408,
        Fault.STATUS_429,
        Fault.STATUS_429_WAIT_0,
        Fault.STATUS_500,
        Fault.HANGS_UP,
        Fault.NEVER,
        Fault.TRICKLES,
    ],
)
async def test_a_passing_failure_is_retried(server: OpenAIServer, remote: OpenAIEmbedder, fault: Fault):
    server.script(fault, None)
    assert_unit(await remote.embed(TEXTS), 3, 32)
    assert server.count == 2


async def test_a_lasting_failure_ends_with_the_attempts(server: OpenAIServer):
    server.fault = Fault.STATUS_500
    embedder = OpenAIEmbedder(endpoint(server), Patience(timeout_s=2, attempts=2, wait_initial_s=0.01))
    with pytest.raises(EmbedderUnavailable):
        await embedder.embed(TEXTS)
    assert server.count == 2
    await embedder.aclose()


async def test_a_server_that_asks_for_240_seconds_is_left_alone_at_once(server: OpenAIServer, remote: OpenAIEmbedder):
    server.fault = Fault.STATUS_429_WAIT_240
    started = time.perf_counter()
    with pytest.raises(EmbedderUnavailable, match="240 s"):
        await remote.embed(TEXTS)
    assert server.count == 1
    assert time.perf_counter() - started < 2


@pytest.mark.parametrize("fault", [Fault.NEVER, Fault.SLOW])
async def test_no_call_outlasts_its_budget_however_many_batches_it_has(server: OpenAIServer, fault: Fault):
    server.fault = fault
    patience = Patience(timeout_s=0.5, budget_s=0.6, attempts=10)
    embedder = OpenAIEmbedder(endpoint(server, batch_size=1), patience)
    started = time.perf_counter()
    with pytest.raises(EmbedderUnavailable):
        await embedder.embed(TEXTS)
    assert time.perf_counter() - started < 1
    await embedder.aclose()


async def test_a_slow_answer_is_waited_for_within_the_timeout(server: OpenAIServer):
    server.fault = Fault.SLOW
    embedder = OpenAIEmbedder(endpoint(server), Patience(timeout_s=2))
    assert_unit(await embedder.embed(TEXTS), 3, 32)
    assert server.count == 1
    await embedder.aclose()


async def test_nobody_listening_is_unavailable(clock: Clock):
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    embedder = OpenAIEmbedder(Endpoint(base_url=f"http://127.0.0.1:{port}/v1", model="m", dimension=8), QUICK, clock)
    with pytest.raises(EmbedderUnavailable, match="no answer"):
        await embedder.embed(TEXTS)
    await embedder.aclose()


# The breaker


async def fail(embedder: OpenAIEmbedder, times: int) -> None:
    for _ in range(times):
        with pytest.raises(EmbedderUnavailable):
            await embedder.embed(TEXTS)


async def test_after_some_failures_in_a_row_nobody_waits_for_the_dead(server: OpenAIServer, remote: OpenAIEmbedder):
    server.fault = Fault.STATUS_500
    await fail(remote, QUICK.failures_to_open)
    asked = server.count
    with pytest.raises(EmbedderUnavailable, match="not asked again"):
        await remote.embed(TEXTS)
    assert server.count == asked


async def test_after_the_cooldown_one_success_closes_the_breaker(
    server: OpenAIServer, remote: OpenAIEmbedder, clock: Clock
):
    server.fault = Fault.STATUS_500
    await fail(remote, QUICK.failures_to_open)
    server.fault = None
    clock.now += QUICK.cooldown_s
    assert_unit(await remote.embed(TEXTS), 3, 32)
    server.fault = Fault.STATUS_500
    await fail(remote, 1)
    server.fault = None
    assert_unit(await remote.embed(TEXTS), 3, 32)


async def test_after_the_cooldown_one_caller_finds_out_for_the_others(
    server: OpenAIServer, remote: OpenAIEmbedder, clock: Clock
):
    server.fault = Fault.STATUS_500
    await fail(remote, QUICK.failures_to_open)
    clock.now += QUICK.cooldown_s
    server.reset()
    server.fault = Fault.NEVER
    await asyncio.gather(*(fail(remote, 1) for _ in range(10)))
    assert server.count == QUICK.attempts
    await fail(remote, 1)
    assert server.count == QUICK.attempts


@pytest.mark.parametrize("alive", [None, Fault.STATUS_400, Fault.ZERO_VECTOR])
async def test_any_answer_in_between_shows_life(server: OpenAIServer, remote: OpenAIEmbedder, alive: Fault | None):
    server.fault = Fault.STATUS_500
    await fail(remote, QUICK.failures_to_open - 1)
    server.fault = alive
    await asyncio.gather(remote.embed(TEXTS), return_exceptions=True)
    server.fault = Fault.STATUS_500
    await fail(remote, QUICK.failures_to_open - 1)
    server.fault = None
    assert_unit(await remote.embed(TEXTS), 3, 32)


async def test_a_cancelled_call_says_nothing_about_the_server(server: OpenAIServer, remote: OpenAIEmbedder):
    server.fault = Fault.STATUS_500
    await fail(remote, QUICK.failures_to_open - 1)
    server.fault = Fault.NEVER
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(remote.embed(TEXTS), 0.05)
    server.fault = Fault.STATUS_500
    await fail(remote, 1)
    with pytest.raises(EmbedderUnavailable, match="not asked again"):
        await remote.embed(TEXTS)
