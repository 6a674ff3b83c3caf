"""The MCP server on standard input and output, for one local user, without a token or a running service."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import suppress
from threading import Thread
from typing import cast

import anyio
from mcp.server.stdio import stdio_server

from app.edge.intake.reading import RouteInput, take
from app.mcp.server import make_server, without_halves
from app.memory_tools.asking import Asking
from retrieval.telemetry import origin


async def serve_on_stdio(asking: Asking) -> None:
    """Serves this user and agent until standard input ends."""

    async def check(_user_sub: str, kind: type[object], body: bytes) -> RouteInput:
        return take(kind, body, origin())  # the process serves one user, so validation may block

    server = make_server(lambda _context: asking, check)
    async with stdio_server(cast("anyio.AsyncFile[str]", _lines())) as (read, write):
        await server.run(read, write, server.create_initialization_options())


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
        yield without_halves(line).decode(errors="replace")
