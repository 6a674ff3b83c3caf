"""A Postgres that scales to zero, as a front of a real one: it sleeps, refuses, or wakes slowly, and counts bytes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy.engine import make_url

Address = Path | tuple[str, int]
"""Address of a real Postgres: its Unix socket, or its host and port."""


@dataclass
class SleepyDatabase:
    """The front: while it refuses, no connection is taken; those that it has are cut by ``sleep``."""

    address: Address
    port: int = 0
    refuses: bool = False
    wakes_in_s: float = 0.0
    received: int = 0
    accepted: int = 0
    writers: set[asyncio.StreamWriter] = field(default_factory=set)

    def url(self, url: str) -> str:
        """Returns the URL with the front in the place of the Postgres."""
        front = make_url(url).set(host="127.0.0.1", port=self.port).difference_update_query(["host", "port"])
        return front.render_as_string(hide_password=False)

    @property
    def open(self) -> int:
        return len(self.writers)

    def sleep(self) -> None:
        """Cuts every connection, and refuses new ones."""
        self.refuses = True
        for writer in list(self.writers):
            writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        if self.refuses:
            writer.transport.abort()
            return
        self.writers.add(writer)
        try:
            await asyncio.sleep(self.wakes_in_s)
            there_reader, there_writer = await self._connected()
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pass_on(reader, there_writer, counted=True))
                both.create_task(self._pass_on(there_reader, writer))
        finally:
            self.writers.discard(writer)

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if isinstance(self.address, Path):
            return await asyncio.open_unix_connection(self.address)
        return await asyncio.open_connection(*self.address)

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, counted: bool = False
    ) -> None:
        with suppress(OSError):
            while portion := await reader.read(1 << 16):
                self.received += len(portion) * counted
                writer.write(portion)
                await writer.drain()
        writer.close()


@asynccontextmanager
async def sleepy_database(address: Address) -> AsyncIterator[SleepyDatabase]:
    """Yields a front of the Postgres that listens at the address."""
    front = SleepyDatabase(address)
    server = await asyncio.start_server(front.serve, "127.0.0.1", 0)
    front.port = server.sockets[0].getsockname()[1]
    try:
        yield front
    finally:
        server.close()
