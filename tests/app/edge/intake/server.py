"""A server in the test's own loop, over a real socket: uvicorn with bounded connections around a small app."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

import uvicorn
from starlette.types import ASGIApp

from app.edge.intake.connections import BoundedConnection, ConnectionBounds

PATIENCE_S = 60


@dataclass
class Client:
    """One connection, by its bytes."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def answer(self) -> tuple[int, bytes]:
        """The status and the body of the next answer."""
        async with asyncio.timeout(PATIENCE_S):
            head = (await self.reader.readuntil(b"\r\n\r\n")).lower()
            length = head.partition(b"content-length:")[2].partition(b"\r\n")[0]
            return int(head.split()[1]), await self.reader.readexactly(int(length))

    async def rest(self) -> bytes:
        """What comes until the server closes the connection."""
        async with asyncio.timeout(PATIENCE_S):
            return await self.reader.read()


@dataclass
class Listening:
    port: int
    bounds: ConnectionBounds

    async def connect(self) -> Client:
        return Client(*await asyncio.open_connection("127.0.0.1", self.port))


@asynccontextmanager
async def listening(app: ASGIApp, **limits: float) -> AsyncIterator[Listening]:
    """Yields a server whose limits are far away, but for those that are named."""
    bounds = ConnectionBounds(
        **{
            "connections": 100,
            "connections_per_address": 100,
            "headers_timeout_s": 3600,
            "body_timeout_s": 3600,
            **limits,
        }
    )
    http = partial(BoundedConnection, bounds)
    config = uvicorn.Config(app, port=0, http=http, ws="none", lifespan="off", log_config=None, timeout_keep_alive=3600)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    try:
        while not server.started:  # noqa: ASYNC110 - uvicorn tells nobody
            await asyncio.sleep(0.01)
        yield Listening(server.servers[0].sockets[0].getsockname()[1], bounds)
    finally:
        server.should_exit = server.force_exit = True
        await serving
