"""Turns: how many requests of one user a process works on at once, and who comes next when more want to.

One event loop serves everybody, so that a request is slowed down by all others under way. Three rules keep it fair:

1. At most ``per_user`` requests of a user are under way; more wait in the user's own line, a while at most.
2. A free place goes to the users in turn, not to whoever has the most waiting.
3. A user who **crowds** (several requests here at once, and more than a share of the processor's time used lately) is
   held to that share as long as somebody is active who does not crowd. Among themselves, those who crowd are equals.
"""

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from app.admission.errors import TooManyAtOnce

ACTIVE_S = 5.0
"""Seconds after a request during which its user counts as active."""
ALLOWANCE_S = 0.03
"""Processor time that a user may use before the share counts."""
MOST_OWED_S = 0.2
"""Most processor seconds that a user can owe, so that a burst is soon paid off."""
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
        running: requests under way.
        line: waiting requests.
        last_turn: number of the request that was let in last.
        seen_at: time at which the last request came or ended.
        used_s: processor seconds used, less the share of the time since.
        used_at: time of ``used_s``.
        usual_s: cost of the last request in processor seconds, charged to the next one in advance.
    """

    running: int = 0
    line: deque[asyncio.Future[None]] = field(default_factory=deque)
    last_turn: int = 0
    seen_at: float = 0.0
    used_s: float = 0.0
    used_at: float = 0.0
    usual_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Turn:
    """An admitted request: its user's seat, and the start of its costs."""

    seat: Seat
    counted_s: float
    charged_s: float


@dataclass(slots=True)
class Turns:
    """Gives the requests of a process their turns; it belongs to one event loop.

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
    """Processor seconds of an imaginary request that is always under way and shares with the others at each moment."""
    _counted_at: float = 0.0
    _alarm: asyncio.TimerHandle | None = None

    async def enter(self, user_sub: str) -> Turn:
        """Waits for the user's turn and returns it, to be given to ``leave``.

        Raises:
            TooManyAtOnce: it did not come in time, or too many of the user's requests wait already.
        """
        seat = self._seat(user_sub)
        if not seat.line and self._may_start(seat, wanted=1):
            return self._start(seat)
        if len(seat.line) >= self.places.line:
            raise self._too_many()
        return await self._wait(user_sub, seat)

    def leave(self, turn: Turn) -> None:
        """Ends a request that was let in, and lets in who waits for the place."""
        self._count()
        seat, cost_s = turn.seat, self._counted_s - turn.counted_s
        self._stop(seat)
        seat.usual_s = cost_s
        seat.seen_at = self.clock()
        seat.used_s = min(MOST_OWED_S, max(0.0, self._used_s(seat) + cost_s - turn.charged_s))
        self._let_in()

    def _seat(self, user_sub: str) -> Seat:
        """Returns the user's seat."""
        now = self.clock()
        seat = self._seats.setdefault(user_sub, Seat(used_at=now))
        seat.seen_at = now
        self._seats.move_to_end(user_sub)
        self._forget_one(now)
        return seat

    def _forget_one(self, now: float) -> None:
        """Forgets the user who has been gone for longest, so that there are never many more than are active."""
        user_sub, seat = next(iter(self._seats.items()))
        if seat.running or seat.line:
            self._seats.move_to_end(user_sub)
        elif seat.seen_at < now - ACTIVE_S:
            del self._seats[user_sub]

    async def _wait(self, user_sub: str, seat: Seat) -> Turn:
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
            if not turn.cancelled():  # its turn came in the same moment
                self._stop(seat)
            self._let_in()
            if isinstance(gone, TimeoutError):
                raise self._too_many() from None
            raise
        return self._turn(seat)

    def _let_in(self) -> None:
        """Lets in whoever may start, the users in turn, and looks again when the first of those who pause may."""
        if not self._waiting and self._alarm is None:
            return
        let_in = True
        while let_in and self.running < self.places.in_all:
            in_turn = sorted(self._waiting, key=lambda user_sub: self._waiting[user_sub].last_turn)
            let_in = any([self._next_of(user_sub) for user_sub in in_turn])  # noqa: C419 - one of each
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        # of the others who wait, somebody's leaving lets them in
        pauses = [pause_s for seat in self._waiting.values() if (pause_s := self._pause_s(seat)) > 0]
        if pauses:
            self._alarm = asyncio.get_running_loop().call_later(max(0.001, min(pauses)), self._let_in)

    def _next_of(self, user_sub: str) -> bool:
        """Lets in the first of the user's line, and returns whether it could."""
        seat = self._waiting[user_sub]
        while seat.line and seat.line[0].done():  # it gave up, and will say so itself
            seat.line.popleft()
        if not seat.line:
            del self._waiting[user_sub]
            return False
        if not self._may_start(seat):
            return False
        self._begin(seat)
        seat.line.popleft().set_result(None)
        return True

    def _may_start(self, seat: Seat, wanted: int = 0) -> bool:
        if self.running >= self.places.in_all or seat.running >= self.places.per_user:
            return False
        return not self._crowds(seat, wanted) or not self._somebody_else(seat)

    def _crowds(self, seat: Seat, wanted: int = 0) -> bool:
        return seat.running + len(seat.line) + wanted > 1 and self._used_s(seat) > ALLOWANCE_S

    def _somebody_else(self, seat: Seat) -> bool:
        """Returns whether another user is active who does not crowd."""
        since = self.clock() - ACTIVE_S
        return any(
            each is not seat and each.seen_at >= since and not self._crowds(each)
            for each in reversed(self._seats.values())
        )

    def _start(self, seat: Seat) -> Turn:
        self._begin(seat)
        return self._turn(seat)

    def _begin(self, seat: Seat) -> None:
        self._count()
        self.running += 1
        seat.running += 1
        self._begun += 1
        seat.last_turn = self._begun
        seat.used_s = self._used_s(seat) + seat.usual_s

    def _turn(self, seat: Seat) -> Turn:
        return Turn(seat, self._counted_s, seat.usual_s)

    def _stop(self, seat: Seat) -> None:
        self.running -= 1
        seat.running -= 1

    def _used_s(self, seat: Seat) -> float:
        now = self.clock()
        seat.used_s = max(0.0, seat.used_s - (now - seat.used_at) * self.places.share)
        seat.used_at = now
        return seat.used_s

    def _pause_s(self, seat: Seat) -> float:
        return (self._used_s(seat) - ALLOWANCE_S) / self.places.share

    def _count(self) -> None:
        """Divides the processor's time since the last count among the requests under way."""
        spent = self.processor()
        self._counted_s += (spent - self._counted_at) / max(1, self.running)
        self._counted_at = spent

    def _too_many(self) -> TooManyAtOnce:
        return TooManyAtOnce("this user has too many requests under way at once", max(1.0, self.places.wait_s), AT_ONCE)
