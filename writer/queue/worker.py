"""The worker: a loop that takes rows off the queues and passes them to their handlers."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from policy.fit import FIRST_ORDER
from retrieval.database.database import Database
from retrieval.database.rest import Rest
from retrieval.errors import DatabaseUnavailable
from retrieval.ports import Embedder
from retrieval.tables.cases import cases, inserted_memories
from retrieval.tables.memories import memories
from retrieval.tables.procedures import reflections
from retrieval.tables.sessions import sessions
from retrieval.tasks import is_cancelled
from retrieval.telemetry import log
from writer.privacy.keys import Keyring
from writer.procedures.ports import Learners
from writer.procedures.rules.learners import RuleLearners
from writer.profiles import Profile
from writer.queue.cases import CaseHandler
from writer.queue.inserted import InsertedHandler
from writer.queue.lessons import LessonHandler
from writer.queue.memories import MemoryHandler
from writer.queue.queue import Pace, Queue
from writer.queue.sessions import SessionHandler
from writer.queue.statements import due_in
from writer.queue.summarist import Summarist
from writer.queue.wake import LONGEST_S, Wake

MEMORIES = 256
"""Maximum number of memories that are embedded at a time."""
LEARN_S = 5.0
"""Seconds after which the worker learns from runs, and summarises a session, even if further cases wait to be found."""
HELP_S = 1.0
"""Least time in seconds between two calls by which a busy worker asks other workers for help."""
OUTAGE_S = 2.0
"""Longest pause in seconds between two looks at the queues after one that failed, say without a database."""


@dataclass(slots=True)
class Worker:
    """A worker: handles the rows of the queues; any number of workers may run, in this process or others.

    Attributes:
        llm: builds the learners of a profile that wants a language model; None: the service has no model.
        summarist: summarises sessions by a language model; None: the service has none.
        rest: the process's rest, in which the worker sleeps; None: the process never rests.
        first_order: order of cases that a profile uses until a replay finds a better order.
        looked_at: the time of the last look at the queues, by the monotonic clock; None: the worker never ran.
        due_in_s: seconds from the last look until a row is due, 0 if a row was due; None: the queues were empty.
    """

    database: Database
    embedder: Embedder
    keyring: Keyring
    pgvector: bool = True
    pace: Pace = field(default_factory=Pace)
    rng: random.Random = field(default_factory=random.Random)
    rules: Learners = field(default_factory=RuleLearners)
    llm: Callable[[Profile], Learners] | None = None
    summarist: Summarist | None = None
    rest: Rest | None = None
    first_order: str = FIRST_ORDER
    looked_at: float | None = None
    due_in_s: float | None = None
    wakes: Wake = field(init=False)
    cases: CaseHandler = field(init=False)
    sessions: SessionHandler = field(init=False)
    memories: MemoryHandler = field(init=False)
    inserted: InsertedHandler = field(init=False)
    lessons: LessonHandler = field(init=False)
    _learned_at: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        """Builds a handler for each queue."""
        database, pace, rng = self.database, self.pace, self.rng
        self.wakes = Wake(database, self.rest or Rest(database))
        self.cases = CaseHandler(
            Queue(database, cases, pace, rng, "work.failed"), self.embedder, self.keyring, self.first_order
        )
        of_lessons = Queue(database, reflections, pace, rng, "lessons.failed")
        self.lessons = LessonHandler(of_lessons, self.embedder, self.keyring, self.rules, self.llm, self.pgvector)
        self.sessions = SessionHandler(
            Queue(database, sessions, pace, rng, "sessions.read_failed"), self.keyring, self.summarist
        )
        self.memories = MemoryHandler(
            Queue(database, memories, pace, rng, "memories.embed_failed"), self.embedder, self.keyring
        )
        self.inserted = InsertedHandler(
            Queue(database, inserted_memories, pace, rng, "memories.insert_failed"), self.keyring
        )

    def wake(self) -> None:
        """Makes the worker look at the queues now; called after a write in the same process."""
        self.wakes.called.set()

    async def run(self) -> None:
        """Handles the queues until cancelled; an outage of the database or the embedder only delays the work."""
        log.info("worker.started")
        pause_s, worked, called_at = self.pace.poll_s, 0, -HELP_S
        try:
            while not is_cancelled():  # the embedder's client may have turned the cancellation into an error
                self.looked_at = time.monotonic()
                worked_before, worked = worked, 0
                try:
                    async with self.wakes.rest.work():
                        worked = await self.run_once()
                except DatabaseUnavailable:
                    self.due_in_s, pause_s = None, min(pause_s, OUTAGE_S)
                except Exception as error:  # noqa: BLE001 - whatever it was, the queue must keep moving
                    pause_s = min(pause_s, OUTAGE_S)
                    log.error("worker.crash", error=type(error).__name__)
                if worked or self.due_in_s is not None:
                    self.wakes.rest.use()
                is_busy = worked >= self.pace.batch or (worked and worked_before)  # more may wait
                if is_busy and self.looked_at - called_at >= HELP_S:
                    called_at = self.looked_at
                    await self.wakes.notify()
                if worked or await self.wakes.wait(min(pause_s, self.due_in_s or pause_s)):
                    pause_s = self.pace.poll_s
                else:
                    pause_s = max(self.pace.poll_s, min(LONGEST_S, 2 * pause_s))
        finally:
            log.info("worker.ended")

    async def run_once(self) -> int:
        """Handles one batch of each queue that has due rows; returns the number of rows taken, failed ones included.

        The queue of lessons comes after the others, and counts only if they had no rows. Then come one summary of a
        session and one replay of a profile, which count as one if no row was taken. It also sets ``due_in_s``.

        Raises:
            DatabaseUnavailable: leased rows are queued again at this worker's next look, or when their lease ends.
        """
        queues = (
            (self.cases.queue, self.pace.batch, self.cases.handle),
            (self.sessions.queue, self.pace.batch, self.sessions.handle),
            (self.memories.queue, MEMORIES, self.memories.handle),
            (self.inserted.queue, self.pace.batch, self.inserted.handle),
        )
        lessons = self.lessons.queue
        async with self.database.as_worker() as connection:
            looked = due_in(*(queue.table for queue, _, _ in queues), lessons.table)
            waits_s = (await connection.execute(looked)).one()
        self.due_in_s = min((wait_s for wait_s in waits_s if wait_s is not None), default=None)
        done, learned, summarised = 0, 0, False
        for (queue, most, handle), wait_s in zip(queues, waits_s, strict=False):
            if queue.abandoned or wait_s == 0:
                done += await queue.serve(most, handle)
        is_due = lessons.abandoned or waits_s[-1] == 0 or done > 0  # cases that were finished now have lessons
        if done < self.pace.batch or time.monotonic() - self._learned_at >= LEARN_S:
            self._learned_at = time.monotonic()
            if is_due:
                learned = await lessons.serve(self.pace.batch, self.lessons.handle)
            summarised = await self.sessions.summarise()
        replayed = await self.cases.replay(idle=not (done or learned or summarised))
        return done or learned or int(summarised or replayed)
