"""How long a server is waited for, what is asked again, and when nobody asks any more; seen through the embedder."""

import asyncio
import socket
import time
from dataclasses import replace

import pytest

from app.providers.openai import Endpoint, OpenAIEmbedder, Patience
from retrieval.errors import EmbedderUnavailable
from tests.app.providers.conftest import QUICK, TEXTS, Clock, assert_unit, endpoint
from tests.fakes.openai_server import Fault, OpenAIServer

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
    async with asyncio.timeout(60):
        with pytest.raises(EmbedderUnavailable, match="240 s"):
            await remote.embed(TEXTS)
    assert server.count == 1


@pytest.mark.parametrize("fault", [Fault.NEVER, Fault.SLOW])
async def test_no_call_outlasts_its_budget_however_many_batches_it_has(server: OpenAIServer, fault: Fault):
    server.fault = fault
    patience = Patience(timeout_s=0.5, budget_s=0.6, attempts=10)
    embedder = OpenAIEmbedder(endpoint(server, batch_size=1), patience)
    started = time.perf_counter()
    with pytest.raises(EmbedderUnavailable):
        await embedder.embed(TEXTS)
    assert time.perf_counter() - started < 10  # ten attempts of each batch would take 15 s
    await embedder.aclose()


async def test_a_slow_answer_is_waited_for_within_the_timeout(server: OpenAIServer):
    server.fault = Fault.SLOW
    embedder = OpenAIEmbedder(endpoint(server), Patience(timeout_s=30))
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


async def test_after_the_cooldown_one_caller_finds_out_for_the_others(server: OpenAIServer, clock: Clock):
    remote = OpenAIEmbedder(endpoint(server), replace(QUICK, timeout_s=0.2), clock)
    server.fault = Fault.STATUS_500
    await fail(remote, QUICK.failures_to_open)
    clock.now += QUICK.cooldown_s
    server.reset()
    server.fault = Fault.NEVER
    await asyncio.gather(*(fail(remote, 1) for _ in range(10)))
    assert server.count == QUICK.attempts
    await fail(remote, 1)
    assert server.count == QUICK.attempts
    await remote.aclose()


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
