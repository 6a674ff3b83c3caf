"""A connection that brings too much, or takes too long, is closed; one that behaves notices nothing."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from tests.app.edge.intake.server import Client, listening

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n"
CHUNKED = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    body = await Request(scope, receive).body()
    await PlainTextResponse(body)(scope, receive, send)


def kind(problem: bytes) -> str:
    return json.loads(problem)["type"].rpartition(":")[2]


async def test_a_request_that_behaves_is_answered_on_one_connection_again_and_again():
    async with listening(echo) as server:
        client = await server.connect()
        for _ in range(3):
            client.send(POST + b"0123456789")
            assert await client.answer() == (200, b"0123456789")
        client.send((POST + b"abcdefghij") * 2)
        assert [await client.answer(), await client.answer()] == [(200, b"abcdefghij")] * 2


@pytest.mark.parametrize("begun", [b"", b"GET", b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: "])
async def test_a_head_that_never_ends_is_given_up(begun: bytes):
    async with listening(echo, headers_timeout_s=0.2) as server:
        client = await server.connect()
        client.send(begun)
        status, problem = await client.answer()
        assert (status, kind(problem)) == (408, "too-slow")
        assert await client.rest() == b""


async def trickle(client: Client, drop: bytes) -> bytes:
    """Sends the drop again and again until the connection is closed, and returns what came back."""
    ended = asyncio.create_task(client.rest())
    while not ended.done():
        with suppress(ConnectionError):
            client.send(drop)
        await asyncio.sleep(0.02)
    with suppress(ConnectionError):  # it was closed while a drop was on its way
        return await ended
    return b""


async def test_a_byte_now_and_then_buys_no_more_time_for_the_head():
    async with listening(echo, headers_timeout_s=0.2) as server:
        client = await server.connect()
        client.send(b"GET / HTTP/1.1\r\n")
        await trickle(client, b"X: y\r\n")


async def test_empty_lines_between_requests_do_not_keep_a_connection():
    async with listening(echo, headers_timeout_s=1.0) as server:
        client = await server.connect()
        client.send(POST + b"0123456789")
        assert (await client.answer())[0] == 200
        await trickle(client, b"\r\n")


async def test_a_body_that_stops_is_given_up_and_the_app_learns_of_it():
    gone = asyncio.Event()

    async def waits(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await echo(scope, receive, send)
        except ClientDisconnect:
            gone.set()

    async with listening(waits, body_timeout_s=0.2) as server:
        client = await server.connect()
        client.send(POST + b"01234")
        status, problem = await client.answer()
        assert (status, kind(problem)) == (408, "too-slow")
        async with asyncio.timeout(60):
            await gone.wait()


async def test_a_byte_now_and_then_buys_no_more_time_for_the_body():
    async with listening(echo, body_timeout_s=0.2) as server:
        client = await server.connect()
        client.send(POST.replace(b"10", b"100000"))
        await trickle(client, b"0")


async def test_a_body_that_was_refused_unread_is_given_up_without_a_second_answer():
    async def refuses(scope: Scope, receive: Receive, send: Send) -> None:
        await Response(b"no", 401)(scope, receive, send)

    async with listening(refuses, body_timeout_s=1.0) as server:
        client = await server.connect()
        client.send(POST + b"01234")
        assert await client.answer() == (401, b"no")
        assert await client.rest() == b""


async def test_a_client_that_does_not_read_its_answer_is_given_up():
    over = asyncio.Event()

    async def talks(scope: Scope, receive: Receive, send: Send) -> None:
        async def without_end() -> AsyncIterator[bytes]:
            while True:
                yield b"x" * 100_000
                await asyncio.sleep(0)

        try:
            await StreamingResponse(without_end())(scope, receive, send)
        finally:
            over.set()

    async with listening(talks, body_timeout_s=0.2) as server:
        client = await server.connect()
        client.writer.transport.pause_reading()
        client.send(GET)
        async with asyncio.timeout(60):
            await over.wait()


@pytest.mark.parametrize("head", [b"X: " + b"y" * 70_000, b"X: y\r\n" * 12_000])
async def test_a_head_that_is_too_large_is_refused(head: bytes):
    async with listening(echo) as server:
        client = await server.connect()
        client.send(b"GET / HTTP/1.1\r\n" + head)
        status, problem = await client.answer()
        assert (status, kind(problem)) == (431, "headers-too-large")


async def test_an_address_that_is_too_long_is_refused_as_such():
    async with listening(echo) as server:
        client = await server.connect()
        client.send(b"GET /" + b"y" * 70_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n")
        status, problem = await client.answer()
        assert (status, kind(problem)) == (431, "headers-too-large")
        assert await client.rest() == b""


@pytest.mark.parametrize("trailers", [b"X: " + b"y" * 300_000, b"X: y\r\n" * 50_000])
async def test_trailers_that_are_too_large_are_refused(trailers: bytes):
    async with listening(echo) as server:
        client = await server.connect()
        client.send(CHUNKED + b"1\r\n0\r\n0\r\n" + trailers)
        status, problem = await client.answer()
        assert (status, kind(problem)) == (431, "headers-too-large")


async def test_a_trailer_is_no_header():
    async def tells(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        await request.body()
        await PlainTextResponse(request.headers.get("x-casebank-user", "no user"))(scope, receive, send)

    async with listening(tells) as server:
        client = await server.connect()
        client.send(CHUNKED + b"0\r\nX-Casebank-User: alice\r\n\r\n")
        assert await client.answer() == (200, b"no user")
        client.send(POST.replace(b"Host", b"X-Casebank-User: bob\r\nHost") + b"0123456789")
        assert await client.answer() == (200, b"bob")


async def test_a_body_in_many_small_pieces_is_no_large_head():
    async with listening(echo) as server:
        client = await server.connect()
        client.send(CHUNKED + b"1\r\nx\r\n" * 50_000 + b"0\r\n\r\n")
        assert await client.answer() == (200, b"x" * 50_000)


@pytest.mark.parametrize("protocol", [b"h2c", b"websocket"])
async def test_a_request_that_asks_for_another_protocol_is_answered_with_its_body(protocol: bytes):
    asking = POST.replace(b"Host", b"Connection: Upgrade\r\nUpgrade: " + protocol + b"\r\nHost")
    async with listening(echo) as server:
        client = await server.connect()
        client.send((asking + b"0123456789") * 2 + asking + b"01234")
        assert [await client.answer(), await client.answer()] == [(200, b"0123456789")] * 2
        client.send(b"56789" + POST + b"abcdefghij")
        assert [await client.answer(), await client.answer()] == [(200, b"0123456789"), (200, b"abcdefghij")]


@pytest.mark.parametrize("target", [b"x:1", b"/", b"*", b"http://x/"])
async def test_a_connect_is_refused(target: bytes):
    async with listening(echo) as server:
        client = await server.connect()
        client.send(b"CONNECT " + target + b" HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await client.answer())[0] == 400


async def test_what_is_no_request_is_refused_with_a_problem():
    async with listening(echo) as server:
        client = await server.connect()
        client.send(POST.replace(b"10", b"10\r\nTransfer-Encoding: chunked"))
        status, problem = await client.answer()
        assert (status, kind(problem)) == (400, "not-http")
        assert await client.rest() == b""


async def test_a_refusal_is_not_written_into_the_answer_to_an_earlier_request():
    async def answers_in_part(scope: Scope, receive: Receive, send: Send) -> None:
        async def parts() -> AsyncIterator[bytes]:
            yield b"begun"
            await asyncio.Event().wait()

        await StreamingResponse(parts())(scope, receive, send)

    async with listening(answers_in_part) as server:
        client = await server.connect()
        client.send(GET)
        begun = await client.reader.readuntil(b"begun\r\n")
        client.send(CHUNKED + b"no number\r\n")
        assert begun.startswith(b"HTTP/1.1 200 OK")
        assert await client.rest() == b""


async def test_a_large_body_is_no_large_head():
    async with listening(echo) as server:
        client = await server.connect()
        client.send(POST.replace(b"10", b"200000") + b"x" * 200_000)
        assert await client.answer() == (200, b"x" * 200_000)


async def slow_echo(scope: Scope, receive: Receive, send: Send) -> None:
    body = await Request(scope, receive).body()
    await asyncio.sleep(0.1)
    await PlainTextResponse(body)(scope, receive, send)


async def test_a_client_that_closes_its_side_after_its_requests_gets_every_answer():
    async with listening(slow_echo) as server:
        client = await server.connect()
        client.send((POST + b"0123456789") * 2)
        client.writer.write_eof()
        assert [await client.answer(), await client.answer()] == [(200, b"0123456789")] * 2
        assert await client.rest() == b""


@pytest.mark.parametrize("begun", [b"", b"GET / HTTP/1.1\r\nHost:", POST + b"01234"])
async def test_a_client_that_closes_its_side_within_a_request_is_closed_at_once(begun: bytes):
    async with listening(slow_echo) as server:
        client = await server.connect()
        client.send(begun)
        client.writer.write_eof()
        assert await client.rest() == b""


@pytest.mark.parametrize("limit", ["connections", "connections_per_address"])
async def test_one_connection_too_many_is_refused_until_another_is_closed(limit: str):
    async with listening(echo, **{limit: 3}) as server:
        inside = [await server.connect() for _ in range(3)]
        for client in inside:
            client.send(POST + b"0123456789")
            assert (await client.answer())[0] == 200
        outside = await server.connect()
        status, problem = await outside.answer()
        assert (status, kind(problem)) == (503, "too-many-connections")
        assert await outside.rest() == b""
        inside.pop().writer.close()
        while sum(server.bounds.open_from.values()) > 2:  # noqa: ASYNC110 - a socket tells nobody
            await asyncio.sleep(0.01)
        after = await server.connect()
        after.send(POST + b"0123456789")
        assert (await after.answer())[0] == 200
