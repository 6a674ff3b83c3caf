"""Bound on the bytes of large bodies that the process holds at once, in all and of one user; further bodies wait."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from app.edge.intake.errors import Busy

SHARE = 2
"""Divisor of the total room: one user may hold a half, so that a user who stalls leaves room for the others."""


class Room:
    """Bounds the bytes of large bodies in memory: a body is read only once there is room for all of its bytes.

    Bodies that are read as they come could fill the room together, and no body would ever be whole.
    """

    def __init__(self, total_bytes: int, patience_s: float) -> None:
        self._free = total_bytes
        self._most = total_bytes // SHARE
        self._patience_s = patience_s
        self._held: Counter[str] = Counter()
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def held(self, user_sub: str, size: int) -> AsyncIterator[None]:
        """Holds room for ``size`` bytes of the user for the time of the block.

        Raises:
            Busy: there was no room in time.
        """

        def fits() -> bool:  # the first body of a user fits into an empty share, whatever the settings
            held = self._held.get(user_sub, 0)
            return (size <= self._free or not self._held) and (held + size <= self._most or not held)

        try:
            async with asyncio.timeout(self._patience_s), self._changed:
                await self._changed.wait_for(fits)
                self._free -= size
                self._held[user_sub] += size
        except TimeoutError:
            raise Busy("too many large requests are under way") from None
        try:
            yield
        finally:
            async with self._changed:
                self._free += size
                self._held[user_sub] -= size
                if not self._held[user_sub]:
                    del self._held[user_sub]
                self._changed.notify_all()
