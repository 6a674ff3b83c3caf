"""Bounds the requests that a process works on at once, in all and of one user, and lets users in by turns.

One event loop serves everybody, so a request is slowed down by all others under way. Three rules keep it fair:

1. At most ``per_user`` requests of a user are under way; further ones wait in the user's own line, for ``wait_s`` at
   most.
2. A free place goes to the users in turn, not to whoever has the most waiting.
3. A user who **crowds** (had several requests here at once, and used more than a share of the processor's time lately)
   is held to that share as long as somebody is here who does not crowd: with a request under way or in line, or, for a
   user who only ever asks one thing at a time, one that ended just now. The share is used in gaps between their
   requests, if there are any. Among themselves, those who crowd are equals; a user who leaves in debt delays no other.
   A new user may turn out to crowd, and holds up others by the first request alone: else the first of each new crowd
   would hold up the one before it.
"""

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from app.admission.errors import TooManyAtOnce

HERE_S = 0.5
"""Seconds after a request during which its user counts as here: the next one of a single client may be on its way."""
NEW_S = 2.0
"""Seconds from the first request during which a user is new."""
LOOK_S = 0.01
"""Seconds between two looks whether a user who is held to a share may go on."""
KEPT_S = 5.0
"""Seconds after a request after which its user's seat is forgotten; by then the longest debt is paid off."""
ALLOWANCE_S = 0.03
"""Processor seconds that a user may use beyond ``Places.share`` before the user is held to that share."""
IN_A_GAP_S = 0.05
"""The same in a gap, in which no request of a user who does not crowd is under way; more, so that a gap is used."""
MOST_OWED_S = 0.2
"""Largest debt of a user: processor seconds used beyond the user's share, bounded so that a burst is soon paid off."""
AT_ONCE = "user-at-once"


@dataclass(frozen=True, slots=True)
class Places:
    """Bounds on concurrent and waiting requests.

    Attributes:
        in_all: concurrent requests of all users.
        per_user: concurrent requests of one user.
        line: waiting requests of one user; further ones are refused at once.
        wait_s: longest wait, in seconds.
        share: share of the processor's time, above 0, for a user who crowds while others are active.
    """

    in_all: int = 64
    per_user: int = 4
    line: int = 100
    wait_s: float = 2.0
    share: float = 0.1


@dataclass(slots=True)
class Seat:
    """State of a user who was active lately.

    Attributes:
        came_at: time of the first request.
        seen_at: time at which the last request came or ended.
        owed_at: time of ``owed_s``.
        owed_s: processor seconds used, less ``Places.share`` of the time since.
        usual_s: processor seconds of the last request, charged to the next one in advance.
        running: requests under way.
        line: waiting requests.
        last_turn: running number of the user's request that was let in last.
        several: True since the user had several requests at once.
    """

    came_at: float
    seen_at: float
    owed_at: float
    owed_s: float = 0.0
    usual_s: float = 0.0
    running: int = 0
    line: deque[asyncio.Future[None]] = field(default_factory=deque)
    last_turn: int = 0
    several: bool = False

    def is_here(self, now: float) -> bool:
        """Returns whether the user counts as here, and may hold up who crowds."""
        if now - NEW_S < self.came_at < self.seen_at:  # new, and beyond the first request
            return False
        return bool(self.running or self.line) or (not self.several and self.seen_at >= now - HERE_S)


@dataclass(frozen=True, slots=True)
class AdmittedRequest:
    """An admitted request.

    Attributes:
        seat: state of the request's user.
        counted_s: processor seconds counted by ``Turns`` when the request began.
        charged_s: processor seconds charged to the user in advance.
    """

    seat: Seat
    counted_s: float
    charged_s: float


@dataclass(slots=True)
class Turns:
    """Gives the requests of a process their turns; one instance belongs to one event loop.

    Attributes:
        places: bounds on the requests.
        clock: clock in seconds, monotonic.
        processor: clock of the processor seconds that the process has used.
        running: requests under way.
    """

    places: Places = field(default_factory=Places)
    clock: Callable[[], float] = time.monotonic
    processor: Callable[[], float] = time.process_time
    running: int = 0
    _seats: OrderedDict[str, Seat] = field(default_factory=OrderedDict)
    """Seats of the users who were active lately, by the last request."""
    _waiting: dict[str, Seat] = field(default_factory=dict)
    """Seats with a line; the next turn goes to the user who was let in longest ago."""
    _begun: int = 0
    _counted_s: float = 0.0
    """Processor seconds charged so far to a request that was always under way; grows by the cost of each request."""
    _counted_at: float = 0.0
    _looks_again: bool = False

    async def enter(self, user_sub: str) -> AdmittedRequest:
        """Waits for the user's turn and returns it, to be given to ``leave``.

        Raises:
            TooManyAtOnce: the turn did not come in time, or too many of the user's requests wait already.
        """
        now = self.clock()
        seat = self._seats.setdefault(user_sub, Seat(now, now, now))
        seat.seen_at = now
        seat.several |= bool(seat.running or seat.line)
        self._seats.move_to_end(user_sub)
        # the user who has been gone for longest is forgotten: there are never many more seats than active users
        oldest_sub, oldest = next(iter(self._seats.items()))
        if oldest.running or oldest.line:
            self._seats.move_to_end(oldest_sub)
        elif oldest.seen_at < now - KEPT_S:
            del self._seats[oldest_sub]
        if not seat.line and self._may_start(seat):
            self._begin(seat)
        elif len(seat.line) >= self.places.line:
            raise self._too_many()
        else:
            await self._wait(user_sub, seat)
        return AdmittedRequest(seat, self._counted_s, seat.usual_s)

    def leave(self, turn: AdmittedRequest) -> None:
        """Ends an admitted request, charges its processor time to its user, and lets in the next that waits."""
        self._count()
        seat, cost_s = turn.seat, self._counted_s - turn.counted_s
        self._stop(seat)
        seat.usual_s = cost_s
        seat.seen_at = self.clock()
        seat.owed_s = min(MOST_OWED_S, max(0.0, self._owed_s(seat) + cost_s - turn.charged_s))
        self._let_in()

    async def _wait(self, user_sub: str, seat: Seat) -> None:
        """Waits in the user's line until the request has begun.

        Raises:
            TooManyAtOnce: the turn did not come in time.
        """
        turn = asyncio.get_running_loop().create_future()
        seat.line.append(turn)
        self._waiting.setdefault(user_sub, seat)
        self._let_in()
        try:
            async with asyncio.timeout(self.places.wait_s):
                await turn
        except (TimeoutError, asyncio.CancelledError) as gone:
            with suppress(ValueError):
                seat.line.remove(turn)
            if not seat.line:  # a seat that is forgotten must not take the place of its user's next one
                self._waiting.pop(user_sub, None)
            if not turn.cancelled():  # its turn came in the same moment
                self._stop(seat)
            self._let_in()
            if isinstance(gone, TimeoutError):
                raise self._too_many() from None
            raise

    def _let_in(self) -> None:
        """Lets in the waiting requests that may start, one of each user at a time.

        While requests wait, a timer calls this method again, because paid debts and departures are not announced.
        """
        let_in = bool(self._waiting)
        while let_in and self.running < self.places.in_all:
            in_turn = sorted(self._waiting, key=lambda user_sub: self._waiting[user_sub].last_turn)
            let_in = any([self._next_of(user_sub) for user_sub in in_turn])  # noqa: C419 - one of each
        if self._waiting and not self._looks_again:
            self._looks_again = True
            asyncio.get_running_loop().call_later(LOOK_S, self._look)

    def _look(self) -> None:
        self._looks_again = False
        self._let_in()

    def _next_of(self, user_sub: str) -> bool:
        """Lets in the first request of the user's line, and returns False if none may start now."""
        seat = self._waiting[user_sub]
        while seat.line and seat.line[0].done():  # that request gave up, and raises its own error
            seat.line.popleft()
        if not seat.line:
            del self._waiting[user_sub]
            return False
        if not self._may_start(seat):
            return False
        self._begin(seat)
        seat.line.popleft().set_result(None)
        return True

    def _may_start(self, seat: Seat) -> bool:
        if self.running >= self.places.in_all or seat.running >= self.places.per_user:
            return False
        if not self._crowds(seat):
            return True
        now, owes_much = self.clock(), self._owed_s(seat) > IN_A_GAP_S
        return not any(
            (owes_much or each.running) and each.is_here(now) and not self._crowds(each)
            for each in reversed(self._seats.values())
        )

    def _crowds(self, seat: Seat) -> bool:
        return seat.several and self._owed_s(seat) > ALLOWANCE_S

    def _begin(self, seat: Seat) -> None:
        self._count()
        self.running += 1
        seat.running += 1
        self._begun += 1
        seat.last_turn = self._begun
        seat.owed_s = self._owed_s(seat) + seat.usual_s

    def _stop(self, seat: Seat) -> None:
        self.running -= 1
        seat.running -= 1

    def _owed_s(self, seat: Seat) -> float:
        now = self.clock()
        seat.owed_s = max(0.0, seat.owed_s - (now - seat.owed_at) * self.places.share)
        seat.owed_at = now
        return seat.owed_s

    def _count(self) -> None:
        """Divides the processor's time since the last count among the requests under way."""
        spent = self.processor()
        self._counted_s += (spent - self._counted_at) / max(1, self.running)
        self._counted_at = spent

    def _too_many(self) -> TooManyAtOnce:
        return TooManyAtOnce("this user has too many requests under way at once", max(1.0, self.places.wait_s), AT_ONCE)
