"""Wakes workers when there is work: the worker of this process by an event, those of other processes by NOTIFY.

A lost notice only delays the work: a worker looks at the queues by itself after at most LONGEST_S.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field

import asyncpg
from sqlalchemy import text

from retrieval.database.database import Database
from retrieval.database.rest import Rest
from retrieval.errors import CasebankError
from retrieval.telemetry import log

CHANNEL = "casebank_work"
LONGEST_S = 60.0
"""Longest time in seconds between two looks of a worker at the queues, unless its process rests."""
APART_S = 0.1
"""Least time in seconds between two notices of one process: Postgres lets one transaction notify at a time."""
LISTEN_AGAIN_S = 1.0
"""Seconds until a process whose listening connection broke opens another."""

_NOTIFY = text(f"NOTIFY {CHANNEL}")
_BROKEN = OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError
"""Errors of a listening connection that is lost; asyncpg raises the last one if it dies while it sends a request."""


@dataclass(slots=True)
class Wake:
    """The call that makes workers look at the queues, in this process and in others.

    Attributes:
        called: set from a call until the worker looks at the queues.
        rest: the rest of the process, in which its worker sleeps.
        listens: True while a connection listens to the calls of other processes.
    """

    database: Database
    rest: Rest
    called: asyncio.Event = field(default_factory=asyncio.Event)
    listens: bool = False

    async def wait(self, longest_s: float) -> bool:
        """Waits for a call, at most ``longest_s`` seconds, or for the end of a rest; returns whether one came."""
        with suppress(TimeoutError):
            async with asyncio.timeout(longest_s):  # wait_for forgets a cancellation that meets a call
                await self.called.wait()
        if self.rest.at_rest:
            await self.rest.awake.wait()
            self.called.set()
        called = self.called.is_set()
        self.called.clear()
        return called

    async def notify(self) -> None:
        """Calls the workers of other processes; without an answer of the database, they look by themselves later."""
        try:
            async with self.database.as_worker() as connection:
                await connection.execute(_NOTIFY)
        except CasebankError as error:
            log.debug("worker.not_notified", error=type(error).__name__)

    async def pass_on(self) -> None:
        """Passes each call on to other processes, until cancelled; for a process without a worker of its own."""
        while True:
            await self.called.wait()
            self.called.clear()
            await self.notify()
            await asyncio.sleep(APART_S)

    async def listen(self) -> None:
        """Listens to the calls of other processes, except while this process rests, until cancelled.

        It returns at once if a pooler may give each transaction another session, because then no call is heard. Each
        new connection counts as a call, because calls may have been missed before.
        """
        ended = asyncio.Event()
        self.rest.on_change.append(ended.set)
        while self.database.fast_begins_with is None:
            await self.rest.awake.wait()
            ended.clear()
            try:
                async with self.database.pool.acquire() as connection:
                    connection.add_termination_listener(lambda _connection: ended.set())
                    try:
                        await connection.add_listener(CHANNEL, lambda *_notice: self.called.set())
                        self.listens = True
                        self.called.set()
                        await ended.wait()
                    finally:
                        self.listens = False
                        connection.terminate()  # the pool would take it for a usable one
            except _BROKEN as error:
                log.debug("worker.not_listening", error=type(error).__name__)
            await asyncio.sleep(LISTEN_AGAIN_S)
