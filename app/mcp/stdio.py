"""The MCP server on standard input and output, for one local user, without a token or a running service."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Thread
from typing import cast

import anyio
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
)
from pydantic import ValidationError

from app.edge.intake.reading import RouteInput, take
from app.mcp.server import Context, make_server, without_halves
from app.memory_tools.asking import Asking
from retrieval.telemetry import origin

CANCELLED = "notifications/cancelled"
LAST_ANSWERS_S = 60.0
"""Seconds in which open calls are answered once standard input has ended; the library would drop them at once."""
NO_MESSAGE = "the line is no message of the protocol; each message has a line of its own, also those of a batch"


@dataclass(frozen=True, slots=True)
class OpenCalls:
    """Ids of the calls that were taken and not answered yet."""

    _ids: set[str] = field(default_factory=set)
    _closed: asyncio.Event = field(default_factory=asyncio.Event)

    def take(self, message: JSONRPCMessage) -> None:
        """Opens a call, or closes it with its answer or its cancellation."""
        if isinstance(message, JSONRPCRequest):
            self._ids.add(str(message.id))
        elif not isinstance(message, JSONRPCNotification):
            self._ids.discard(str(message.id))
        elif message.method == CANCELLED:
            self._ids.discard(str((message.params or {}).get("requestId")))
        self._closed.set()

    async def end(self) -> None:
        """Waits until every call is closed, or until LAST_ANSWERS_S have passed."""
        with anyio.move_on_after(LAST_ANSWERS_S):
            while self._ids:
                self._closed.clear()
                await self._closed.wait()


async def serve_on_stdio(asking: Asking) -> None:
    """Serves this user and agent until standard input ends and what it asked is answered."""

    async def check(_context: Context, kind: type[object], body: bytes) -> RouteInput:
        return take(kind, body, origin())  # the process serves one user, so validation may block

    server = make_server(lambda _context: asking, check)
    async with (
        stdio_server(cast("anyio.AsyncFile[str]", _lines())) as (read, write),
        anyio.create_task_group() as group,
    ):
        taken, messages = anyio.create_memory_object_stream[SessionMessage | Exception]()
        answers, answered = anyio.create_memory_object_stream[SessionMessage]()
        calls = OpenCalls()

        async def take_messages() -> None:
            async with taken:
                async for item in read:
                    if isinstance(item, Exception):
                        await write.send(SessionMessage(refusal(item)))
                    else:
                        calls.take(item.message)
                        await taken.send(item)
                await calls.end()

        async def send_answers() -> None:
            async with write:
                async for item in answered:
                    await write.send(item)
                    calls.take(item.message)

        group.start_soon(take_messages)
        group.start_soon(send_answers)
        await server.run(messages, answers, server.create_initialization_options())


def refusal(error: Exception) -> JSONRPCError:
    """Returns the answer to a line that is no message of the protocol; the library would pass over it in silence."""
    is_json = not isinstance(error, ValidationError) or error.errors()[0]["type"] != "json_invalid"
    code, text = (INVALID_REQUEST, NO_MESSAGE) if is_json else (PARSE_ERROR, "the line is not JSON")
    return JSONRPCError(jsonrpc="2.0", id=None, error=ErrorData(code=code, message=text))


async def _lines() -> AsyncIterator[str]:
    """Yields the messages, each on a line of its own.

    A daemon thread reads them: the process may end while the thread waits for a line, and no library's thread may.
    """
    loop, lines = asyncio.get_running_loop(), asyncio.Queue[bytes](maxsize=1)
    file = os.fdopen(os.dup(0), "rb")  # here, where the command tells of an error

    def hand_on(line: bytes) -> None:
        asyncio.run_coroutine_threadsafe(lines.put(line), loop).result()

    def read() -> None:
        with file, suppress(OSError):  # an input that cannot be read has ended
            for line in file:
                hand_on(line)
        hand_on(b"")

    Thread(target=read, daemon=True).start()
    while line := await lines.get():
        if line.isspace():
            continue
        yield without_halves(line).decode(errors="replace")
