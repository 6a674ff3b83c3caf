"""Closes the connections of a process that is not used for a while, so that a database can scale to zero."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from retrieval.database.database import Database
from retrieval.errors import DatabaseUnavailable
from retrieval.telemetry import log, stage

COLD_S = 30.0
"""Longest time in seconds that the first request after a rest waits for the database."""
FIRST_PAUSE_S, LAST_PAUSE_S = 0.1, 1.0
"""Shortest and longest pause in seconds between two tries to reach a database that starts."""
BUSY_S = 1.0
"""Seconds until a process that should rest, but is at work, tries again; also least time between two noted uses."""


def now() -> float:
    """Returns the time in seconds by the clock of the running event loop."""
    return asyncio.get_running_loop().time()


@dataclass(slots=True)
class Rest:
    """State of a process: awake, or at rest, with no open connection and no statement sent.

    Attributes:
        idle_s: seconds without a request or work after which the process rests; 0: it never does.
        used_at: time of the last request or work.
        woke_at: time at which the last rest ended; 0: there was none.
        awake: event that is set while the process is awake.
        on_change: functions that are called when a rest begins or ends.
    """

    database: Database
    idle_s: float = 0.0
    used_at: float = field(default_factory=now)
    woke_at: float = 0.0
    awake: asyncio.Event = field(default_factory=asyncio.Event)
    on_change: list[Callable[[], None]] = field(default_factory=list)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _waking: asyncio.Task[None] | None = None
    _at_work: int = 0
    _closing: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Lock held while connections are closed: a connection opened meanwhile would be forgotten and stay open."""

    def __post_init__(self) -> None:
        """Marks the process as awake."""
        self.awake.set()

    @property
    def at_rest(self) -> bool:
        """Returns whether the process rests."""
        return not self.awake.is_set()

    def use(self) -> None:
        """Notes that the process is used, by a request or by work."""
        before, self.used_at = self.used_at, now()
        if self.used_at - before >= BUSY_S:
            self._changed.set()

    async def wake(self) -> None:
        """Notes a request; if the process rests, ends the rest and waits until the database answers, COLD_S at most.

        Raises:
            DatabaseUnavailable: the database did not answer in time; the next request waits again.
        """
        self.use()
        if self.at_rest:
            with stage("cold"):
                if self._waking is None:
                    self._waking = asyncio.create_task(self._wake())
                await asyncio.shield(self._waking)

    async def _wake(self) -> None:
        pause_s = FIRST_PAUSE_S
        try:
            async with asyncio.timeout(COLD_S), self._closing:
                while True:
                    with suppress(DatabaseUnavailable):
                        async with self.database.as_worker():
                            break
                    await asyncio.sleep(pause_s)
                    pause_s = min(LAST_PAUSE_S, 2 * pause_s)
        except TimeoutError:
            raise DatabaseUnavailable(f"the database did not wake within {COLD_S:.0f} s") from None
        finally:
            self._waking = None
        self.awake.set()
        self.used_at = self.woke_at = now()
        log.info("rest.ended")
        self._tell()

    def _tell(self) -> None:
        self._changed.set()
        for each in self.on_change:
            each()

    async def keep(self) -> None:
        """Begins a rest whenever the process was not used for ``idle_s`` seconds; runs until it is cancelled."""
        while self.idle_s:
            left_s = self.used_at + self.idle_s - now()
            if self.at_rest:
                await self.awake.wait()
            elif left_s > 0 or self._at_work:
                await asyncio.sleep(max(left_s, BUSY_S if self._at_work else 0))
            else:
                self.awake.clear()
                log.info("rest.began")
                self._tell()
                await self._close()

    @asynccontextmanager
    async def work(self) -> AsyncIterator[None]:
        """Keeps a rest from beginning while the block runs; closes the connections afterwards if the process rests."""
        async with self._closing:
            self._at_work += 1
        try:
            yield
        finally:
            self._at_work -= 1
            await self._close()

    async def _close(self) -> None:
        """Closes the connections if the process is at rest and no work is in progress."""
        async with self._closing:
            if self.at_rest and not self._at_work:
                await self.database.close_idle()

    async def until(self, due_at: Callable[[], float]) -> None:
        """Waits until the time that ``due_at`` returns; asks it again after each use, begin or end of a rest."""
        while (left_s := due_at() - now()) > 0:
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._changed.wait()
