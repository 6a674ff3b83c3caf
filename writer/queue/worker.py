"""The worker: a loop that takes cases, sessions and memories off their queues and passes them to their handlers."""

import asyncio
import random
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from retrieval.database.database import Database
from retrieval.errors import DatabaseUnavailable
from retrieval.ports import Embedder
from retrieval.tables.cases import cases
from retrieval.tables.memories import memories
from retrieval.tables.sessions import sessions
from retrieval.telemetry import log
from writer.privacy.keys import Keyring
from writer.procedures.learn_from_run import rule_learners
from writer.procedures.ports import Learners
from writer.profiles import Profile
from writer.queue.cases import CaseHandler
from writer.queue.memories import MemoryHandler
from writer.queue.queue import Pace, Queue
from writer.queue.sessions import SessionHandler
from writer.queue.summarist import Summarist

MEMORIES = 256
"""Most memories that are embedded at a time."""


@dataclass(slots=True)
class Worker:
    """One consumer of the queues; any number of them may run, in this process or another.

    Attributes:
        llm: builds the learners of a profile that wants a language model's; None: the service has no model.
        summarist: summarises sessions by a language model; None: the service has none.
        looked_at: the time of the last look at the queues, by the monotonic clock; None: the worker never ran.
    """

    database: Database
    embedder: Embedder
    keyring: Keyring
    pgvector: bool = True
    pace: Pace = field(default_factory=Pace)
    rng: random.Random = field(default_factory=random.Random)
    rules: Learners = field(default_factory=rule_learners)
    llm: Callable[[Profile], Learners] | None = None
    summarist: Summarist | None = None
    looked_at: float | None = None
    cases: CaseHandler = field(init=False)
    sessions: SessionHandler = field(init=False)
    memories: MemoryHandler = field(init=False)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        """Builds a handler for each queue."""
        database, pace, rng = self.database, self.pace, self.rng
        self.cases = CaseHandler(
            Queue(database, cases, pace, rng, "work.failed"),
            self.embedder,
            self.keyring,
            self.pgvector,
            self.rules,
            self.llm,
        )
        self.sessions = SessionHandler(
            Queue(database, sessions, pace, rng, "sessions.read_failed"), self.keyring, self.summarist
        )
        self.memories = MemoryHandler(
            Queue(database, memories, pace, rng, "memories.embed_failed"), self.embedder, self.keyring
        )

    def wake(self) -> None:
        """Makes the worker look at the queues now; for a retain in the same process."""
        self._wake.set()

    async def run(self) -> None:
        """Works until cancelled; an outage of the database or the embedder only slows it down."""
        log.info("worker.started")
        try:
            while True:
                self.looked_at = time.monotonic()
                try:
                    worked = await self.run_once()
                except DatabaseUnavailable:
                    worked = 0
                except Exception as error:  # noqa: BLE001 - whatever it was, the queue must keep moving
                    log.error("worker.crash", error=type(error).__name__)
                    worked = 0
                if not worked:
                    with suppress(TimeoutError):
                        # wait_for forgets a cancellation that meets a wake
                        async with asyncio.timeout(self.pace.poll_s):
                            await self._wake.wait()
                    self._wake.clear()
        finally:
            log.info("worker.ended")

    async def run_once(self) -> int:
        """Handles one batch of cases, sessions and memories; returns the number of rows taken, failed ones included.

        Raises:
            DatabaseUnavailable: leased rows come back when this worker claims again, or their lease ends.
        """
        done = await self.cases.queue.serve(self.pace.batch, self.cases.handle)
        done += await self.sessions.queue.serve(self.pace.batch, self.sessions.handle)
        done += await self.memories.queue.serve(MEMORIES, self.memories.handle)
        await self.cases.replay(idle=not done)  # what no case needs in order to be found comes last
        return done
