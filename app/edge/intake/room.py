"""Bound on the bytes of large bodies that the process holds at once, in all and of one user; further bodies wait."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field

from app.edge.intake.errors import Busy

SHARE = 2
"""Divisor of the total room: one user may hold a half, so that a user who stalls leaves room for the others."""
ARRIVAL = 2
"""Divisor of the patience: time that a body has to arrive while users wait who hold no room."""


@dataclass(slots=True, eq=False)
class _Body:
    """A body that waits for room or holds it; ``arrival`` ends at ``since`` plus its time, if others wait."""

    user_sub: str
    size: int
    is_in: asyncio.Event = field(default_factory=asyncio.Event)
    arrival: asyncio.Timeout = field(default_factory=lambda: asyncio.timeout(None))
    since: float = 0.0


class Room:
    """Bounds the bytes of large bodies in memory: a body is read only once there is room for all of its bytes.

    Bodies that are read as they come could fill the room together, and no body would ever be whole. A body that
    arrives slowly loses its room if users wait who hold none, and the next bodies of its user go behind theirs.
    """

    def __init__(self, total_bytes: int, patience_s: float) -> None:
        self._free = total_bytes
        self._most = total_bytes // SHARE
        self._patience_s = patience_s
        self._held: Counter[str] = Counter()
        self._waiting: list[_Body] = []
        self._arriving: set[_Body] = set()

    @asynccontextmanager
    async def held(self, user_sub: str, size: int) -> AsyncIterator[AbstractAsyncContextManager[None]]:
        """Holds room for ``size`` bytes of the user for the time of the block, and yields the block to read them in.

        Raises:
            Busy: there was no room in time.
        """
        body = _Body(user_sub, size)
        self._waiting.append(body)
        self._let_in()
        try:
            try:
                async with asyncio.timeout(self._patience_s):
                    await body.is_in.wait()
            except TimeoutError:
                raise Busy("too many large requests are under way") from None
            yield self._arrival(body)
        finally:
            if body in self._waiting:
                self._waiting.remove(body)
            else:
                self._free += size
                self._held[user_sub] -= size
                if not self._held[user_sub]:
                    del self._held[user_sub]
                self._waiting.sort(key=lambda other: other.user_sub == user_sub)  # the user's own go behind the others
            self._let_in()

    @asynccontextmanager
    async def _arrival(self, body: _Body) -> AsyncIterator[None]:
        """Reads a body in the block.

        Raises:
            Busy: the body arrived slowly, and others waited for its room.
        """
        try:
            async with body.arrival:
                body.since = asyncio.get_running_loop().time()
                self._arriving.add(body)
                self._set_arrivals()
                yield
        except TimeoutError:
            raise Busy("the request arrived too slowly while others waited for its room") from None
        finally:
            self._arriving.discard(body)

    def _fits(self, body: _Body) -> bool:  # the first body of a user fits into an empty share, whatever the settings
        held = self._held.get(body.user_sub, 0)
        return (body.size <= self._free or not self._held) and (held + body.size <= self._most or not held)

    def _let_in(self) -> None:
        """Gives room to the bodies that fit, in the order of the queue."""
        while (body := next(filter(self._fits, self._waiting), None)) is not None:
            self._waiting.remove(body)
            self._free -= body.size
            self._held[body.user_sub] += body.size
            body.is_in.set()
        self._set_arrivals()

    def _set_arrivals(self) -> None:
        """Bounds the time in which bodies arrive if a user waits who holds no room, and else lifts the bound."""
        is_wanted = any(body.user_sub not in self._held for body in self._waiting)
        for body in self._arriving:
            if not body.arrival.expired():
                body.arrival.reschedule(body.since + self._patience_s / ARRIVAL if is_wanted else None)
