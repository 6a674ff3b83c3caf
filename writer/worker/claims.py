"""Takes rows off one of the worker's queues, users taking turns."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

import uuid_utils.compat as uuids
from sqlalchemy import Table
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.database.database import Database
from writer.worker import queue


@dataclass(frozen=True, slots=True)
class Leased:
    """A row of a queue that is this worker's until the lease ends."""

    user_sub: str
    row_id: UUID
    agent_key: str
    attempts: int
    lease_token: UUID
    claimed_at: datetime


@dataclass(slots=True)
class Claims:
    """Leases the rows of one queue to this worker.

    Attributes:
        table: whose rows are their own entries in the queue.
    """

    database: Database
    table: Table
    lease: timedelta
    max_attempts: int
    _last_served: str = field(default="", init=False)
    """Whose turn it was last; the next batch goes to the users after that one."""

    async def take(self, batch: int) -> Sequence[Leased]:
        """Leases up to so many rows: fewer only where no more are due, of any user.

        Raises:
            DatabaseUnavailable: those leased come back when their lease ends.
        """
        token = uuids.uuid7()
        async with self.database.as_worker() as connection:
            await connection.execute(queue.give_up_on_expired(self.max_attempts, self.table))
            after, taken = self._last_served, await self._next(connection, token, batch)
            if len(taken) < batch and after:
                self._last_served = ""  # the users after the last one have had their turn: the first ones begin again
                taken += await self._next(connection, token, batch - len(taken))
        return taken

    async def _next(self, connection: AsyncConnection, token: UUID, most: int) -> list[Leased]:
        rows = await connection.execute(queue.claim(token, self.lease, most, self._last_served, self.table))
        taken = [Leased(r.user_sub, r.id, r.agent_key, r.attempts, token, r.claimed_at) for r in rows]
        self._last_served = max((each.user_sub for each in taken), default=self._last_served)
        return taken
