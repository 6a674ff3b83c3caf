"""The bound on the queue: how much waits for the workers, of whom, and when there will be room again.

The counts are looked up every second, and what this process takes in between is added: no request counts rows. What
other replicas took since the last look is not known yet, and may go over the bound.
"""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from app.admission.errors import BacklogFull, QueueFull
from retrieval.database.database import Database
from writer.worker import queue

PER_USER, IN_ALL = "user-pending", "all-pending"
NAMED_FROM = 0.1
"""From which share of the bound on a user is known by number; those below are taken to have none."""
ROOM_AGAIN = 0.9
"""Whoever was refused is asked to come back when no more than this share of the bound waits."""
SLOWEST, LONGEST_S = 0.1, 3600.0
"""Cases a second that the workers are taken to finish at least, and the longest wait that anybody is told."""
FORGETS = 0.8
"""How much of the measured rate stays after another look."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many cases may be pending; 0: any number."""

    per_user: int = 5_000
    in_all: int = 50_000


@dataclass(slots=True)
class Backlog:
    """What this process knows of the queue.

    As the queue fills, less and less of it may be one user's: from the half of the bound on, down to nothing at the
    bound. So those who filled it are refused first, and whoever has little there is let in until the end.
    """

    database: Database
    bounds: Bounds = field(default_factory=Bounds)
    clock: Callable[[], float] = time.monotonic
    in_all: int = 0
    """Cases that wait, as far as this process knows, of each user no more than one may have."""
    rate: float = 0.0
    """Cases a second that were finished lately."""
    _waited: int = 0
    """Cases that waited when it last looked."""
    _users: int = 0
    _pending: Counter[str] = field(default_factory=Counter)
    _taken: Counter[str] = field(default_factory=Counter)
    """What this process took in since the last look, by user."""
    _looked_at: float = 0.0

    def check(self, user_sub: str) -> None:
        """Lets one more run of the user in.

        Raises:
            BacklogFull: the user has as many in the queue as one may have.
            QueueFull: the queue is so full that no more of this user's fits.
        """
        if not self.bounds.per_user or not self.bounds.in_all:
            return
        full, mine = self.in_all / self.bounds.in_all, self._pending[user_sub]
        if mine >= self.bounds.per_user:
            over = mine - ROOM_AGAIN * self.bounds.per_user
            raise BacklogFull("too many of this user's runs wait for the worker", self._wait_s(over), PER_USER)
        if full >= 1 or mine >= 2 * (1 - full) * self.bounds.per_user:
            over = self.in_all - ROOM_AGAIN * self.bounds.in_all
            raise QueueFull("too many runs wait for the workers", self._wait_s(over, users=1), IN_ALL)

    def took(self, user_sub: str) -> None:
        """Counts a run that was taken in."""
        self.in_all += 1
        self._taken[user_sub] += 1
        self._pending[user_sub] += 1

    async def look(self) -> None:
        """Looks up how much waits, and measures the workers' rate, unless there is nothing to see.

        Raises:
            DatabaseUnavailable: see Database.as_worker.
        """
        if not self.in_all and not self._taken and self._looked_at:
            return
        taken = self._taken.copy()
        async with self.database.as_worker() as connection:
            statement = queue.backlog(self.bounds.per_user, max(1, round(NAMED_FROM * self.bounds.per_user)))
            found = (await connection.execute(statement)).one()
        now = self.clock()
        if self._looked_at and self._waited + taken.total():
            finished = max(0, self._waited + taken.total() - found.waiting) / max(0.001, now - self._looked_at)
            self.rate = FORGETS * self.rate + (1 - FORGETS) * finished if self.rate else finished
        # what came while the database looked may be counted twice, until the next look
        self._taken -= taken
        self._waited, self._users, self._looked_at = found.waiting, found.users, now
        self.in_all = found.bounded + self._taken.total()
        self._pending = Counter(dict(zip(found.names or [], found.numbers or [], strict=True))) + self._taken

    def _wait_s(self, over: float, users: int | None = None) -> float:
        """Returns the seconds in which the workers finish so many cases, the users taking turns."""
        each = max(SLOWEST, self.rate) / max(1, self._users if users is None else users)
        return min(LONGEST_S, max(1.0, over / each))
