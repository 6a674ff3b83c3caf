"""The bound on the queue: pending cases in all and by user, and the time until there is room again.

The counts are read every second, and cases that this process accepts in between are added: no request counts rows.
Cases that other replicas accepted since the last look are not known yet, and may exceed the bound.
"""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from app.admission.errors import BacklogFull, QueueFull
from retrieval.database.database import Database
from writer.queue import statements

PER_USER, IN_ALL = "user-pending", "all-pending"
ANY_NUMBER = 1_000_000_000
"""Bound in place of 0: no queue gets as long."""
NAMED_FROM = 0.1
"""Share of a user's bound above which the user's pending cases are counted; a user below it counts as having 0."""
ROOM_AGAIN = 0.9
"""Share of a bound to which pending cases must fall before a refused user should try again."""
SLOWEST, LONGEST_S = 0.1, 3600.0
"""Lowest assumed rate of the workers, in cases a second, and longest wait that an answer names, in seconds."""
FORGETS = 0.8
"""Weight of the earlier rate when the workers' rate is measured again; the new rate has the rest."""


@dataclass(frozen=True, slots=True)
class PendingBounds:
    """Most pending cases, of one user and of all users; 0: any number."""

    per_user: int = 5_000
    in_all: int = 50_000


@dataclass(slots=True)
class Backlog:
    """Pending cases known to this process.

    As the queue fills, one user may have less of it: from all of the user's bound at half of the queue's bound down to
    0 at the bound. So users who filled it are refused first, and users with few cases last.
    """

    database: Database
    bounds: PendingBounds = field(default_factory=PendingBounds)
    clock: Callable[[], float] = time.monotonic
    in_all: int = 0
    """Pending cases known here; each user is counted up to ``user_pending``."""
    rate: float = 0.0
    """Cases a second that the workers finished lately."""
    _waited: int = 0
    """Pending cases at the last look."""
    _users: int = 0
    _pending: Counter[str] = field(default_factory=Counter)
    _taken: Counter[str] = field(default_factory=Counter)
    """Cases that this process accepted since the last look, by user."""
    _looked_at: float = 0.0

    def check(self, user_sub: str) -> None:
        """Returns if one more run of the user may be accepted.

        Raises:
            BacklogFull: the user has reached the bound of one user.
            QueueFull: the queue is too full for another case of this user.
        """
        per_user, most = self.bounds.per_user or ANY_NUMBER, self.bounds.in_all or ANY_NUMBER
        full, mine = self.in_all / most, self._pending[user_sub]
        if mine >= per_user:
            over = mine - ROOM_AGAIN * per_user
            raise BacklogFull("too many of this user's runs wait for the worker", self._wait_s(over), PER_USER)
        if full >= 1 or mine >= 2 * (1 - full) * per_user:
            over = self.in_all - ROOM_AGAIN * most
            raise QueueFull("too many runs wait for the workers", self._wait_s(over, users=1), IN_ALL)

    def took(self, user_sub: str) -> None:
        """Counts an accepted run."""
        self.in_all += 1
        self._taken[user_sub] += 1
        self._pending[user_sub] += 1

    async def look(self) -> None:
        """Reads the pending cases and measures the workers' rate; an empty queue is not read again.

        Raises:
            DatabaseUnavailable: see Database.as_worker.
        """
        if not self.in_all and not self._taken and self._looked_at:
            return
        taken, per_user = self._taken.copy(), self.bounds.per_user or ANY_NUMBER
        async with self.database.as_worker() as connection:
            statement = statements.backlog(per_user, max(1, round(NAMED_FROM * per_user)))
            row = (await connection.execute(statement)).one()
        now = self.clock()
        if self._looked_at and self._waited + taken.total():
            finished = max(0, self._waited + taken.total() - row.waiting) / max(0.001, now - self._looked_at)
            self.rate = FORGETS * self.rate + (1 - FORGETS) * finished if self.rate else finished
        # cases accepted while the database counted may be counted twice, until the next look
        self._taken -= taken
        self._waited, self._users, self._looked_at = row.waiting, row.users, now
        self.in_all = row.bounded + self._taken.total()
        self._pending = Counter(dict(zip(row.names or [], row.numbers or [], strict=True))) + self._taken

    def _wait_s(self, over: float, users: int | None = None) -> float:
        """Returns the seconds in which the workers finish ``over`` cases, with users served in turn."""
        each = max(SLOWEST, self.rate) / max(1, self._users if users is None else users)
        return min(LONGEST_S, max(1.0, over / each))
