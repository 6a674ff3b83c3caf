"""Leases rows of the queue in one table, users taking turns, and hands back rows whose work failed."""

import random
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

import uuid_utils.compat as uuids
from sqlalchemy import Table, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.database.database import Database
from retrieval.database.rows import AnyRow
from retrieval.errors import DatabaseUnavailable, EmbedderUnavailable, UserErased
from retrieval.tasks import is_cancelled
from retrieval.telemetry import log
from writer.errors import LeaseLost
from writer.privacy.master_keys import MasterKeyMismatch
from writer.queue import statements
from writer.queue.lease import Lease, is_held

MOST_DOUBLINGS = 20
"""Maximum doublings of a delay, because 2 to the power of a thousand attempts is no float."""

LOOK_S = 0.1
"""Seconds after which a worker stops looking for a profile or session that is due: new cases have their turn."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Batch size, lease and delays of a worker.

    Attributes:
        batch: maximum number of cases, and of sessions, that are leased at a time.
        poll_s: seconds to wait after a look at empty queues; doubles with each further such look, up to LONGEST_S.
        lease: time for which leased rows belong to the worker.
        max_attempts: number of failed attempts after which a row is marked dead.
        backoff_s: seconds until a row is due again after its first failure; doubles with each further failure, and a
            random factor of 0.5 to 1 applies.
        backoff_max_s: longest such delay in seconds.
    """

    batch: int = 64
    poll_s: float = 0.2
    lease: timedelta = timedelta(seconds=60)
    max_attempts: int = 8
    backoff_s: float = 1.0
    backoff_max_s: float = 300.0


@dataclass(slots=True)
class Queue:
    """The queue in one table, from which one worker leases rows.

    Attributes:
        failed_event: name of the log event for rows whose work failed.
    """

    database: Database
    table: Table
    pace: Pace
    rng: random.Random
    failed_event: str
    _last_served: str = field(default="", init=False)
    """The last user of the last batch; the next batch begins with the users after this one, by name."""
    abandoned: list[Lease] = field(default_factory=list, init=False)
    """Leases whose work broke off with a database connection; the next ``take`` hands their rows back."""
    _outage_began: float | None = field(default=None, init=False)
    """Time of the embedder's first error since a batch without one, by the monotonic clock; None: the last had none."""
    _outage_batch: UUID | None = field(default=None, init=False)
    """Lease token of the last batch with such an error."""

    async def serve(self, batch: int, handle: Callable[[Sequence[Lease]], Awaitable[None]]) -> int:
        """Leases up to ``batch`` rows and passes them to ``handle``; returns their number, failed rows included.

        If the worker is stopped meanwhile, the unfinished rows are due again at once, and the attempt does not count.

        Raises:
            DatabaseUnavailable: the rows are queued again when this worker leases again, or when their lease ends.
        """
        leases = await self.take(batch)
        if leases:
            try:
                await handle(leases)
            except DatabaseUnavailable:
                self.abandoned += leases
                raise
            finally:
                if is_cancelled():
                    with suppress(DatabaseUnavailable):
                        await self.release(leases)
            if self._outage_batch != leases[0].lease_token:
                self._outage_began = None
        return len(leases)

    async def take(self, batch: int) -> list[Lease]:
        """Leases and returns up to ``batch`` rows; fewer only if no further row of any user is due, or one is alone.

        Before, it hands back rows whose work broke off with a database connection, due at once after the first attempt,
        else after a delay, and ends the leases that ran out. A row of such a lease may have killed its worker: it is
        dead if that was its last attempt, and else it is leased alone, so that it takes no other row along.

        Raises:
            DatabaseUnavailable: rows that were leased are due again when their lease ends.
        """
        token = uuids.uuid7()
        async with self.database.as_worker() as connection:
            for lease in self.abandoned:  # rows that this worker finished after all have no lease
                before = lease.attempts - 1  # where it breaks off each time, other rows and queues come first
                delay = self._backoff(before) if before else timedelta()
                await connection.execute(statements.hand_back(lease, "the work broke off", delay, "failed", self.table))
            ended = await connection.scalars(statements.end_expired(self.pace.max_attempts, self.table))
            given_up = sum(status == "dead" for status in ended)
            after, leases = self._last_served, await self._lease(connection, token, batch)
            is_alone = len(leases) == 1 and leases[0].attempts > 1  # a row whose worker died, or one that failed
            if len(leases) < batch and after and not is_alone:
                self._last_served = ""  # the users after the last one had their turn: the first ones begin again
                leases += await self._lease(connection, token, batch - len(leases), died_too=not leases)
        self.abandoned.clear()
        if given_up:
            log.warning("work.given_up", **{self.table.name: given_up})
        return leases

    async def _lease(
        self, connection: AsyncConnection, token: UUID, most: int, *, died_too: bool = True
    ) -> list[Lease]:
        if self.database.citus:
            rows = await self._rows_by_user(connection, token, most, died_too=died_too)
        else:
            given = {"token": token, "lease": self.pace.lease, "batch": most, "after": self._last_served}
            rows = list(await connection.execute(statements.claim(self.table), {**given, "died_too": died_too}))
        leases = [Lease(r.user_sub, r.id, r.agent_key, r.attempts, token, r.claimed_at) for r in rows]
        self._last_served = max((each.user_sub for each in leases), default=self._last_served)
        return leases

    async def _rows_by_user(
        self, connection: AsyncConnection, token: UUID, most: int, *, died_too: bool
    ) -> list[AnyRow]:
        """Leases and returns rows as ``claim`` does, by a statement for each user's turn.

        A cluster refuses to lock rows of several shards in one statement.
        """
        after = {"after": self._last_served, "batch": most}
        waiting = (await connection.execute(statements.waiting_users(self.table), after)).all()
        users = [user_sub for user_sub, _ in waiting]
        leasing = {"token": token, "lease": self.pace.lease, "now": await connection.scalar(select(func.now()))}
        of_a_turn, leased = max(1, most // statements.TURNS), list[AnyRow]()
        claim = statements.claim_of_user(self.table)
        if died_too and (whose := next((user_sub for user_sub, died in waiting if died), None)) is not None:
            one = {"whose": whose, "most": 1, "died": True}
            return list(await connection.execute(claim, {**one, **leasing}))
        while users and len(leased) < most:
            more = []
            for user_sub in users:
                if len(leased) == most:
                    break
                turn = {"whose": user_sub, "most": min(of_a_turn, most - len(leased)), "died": False}
                rows = (await connection.execute(claim, {**turn, **leasing})).all()
                leased += rows
                if len(rows) == of_a_turn:
                    more.append(user_sub)
            users = more
        return leased

    async def attempt(self, leases: Sequence[Lease], step: Awaitable[str | None]) -> str | None:
        """Awaits one step of the work on leased rows, and hands the rows back if the step fails.

        Returns the end of the work: the step's result, "failed", or for deleted rows the name of the error; None: the
        work goes on.

        Raises:
            DatabaseUnavailable: the step's changes may or may not be stored.
        """
        try:
            return await step
        except (UserErased, LeaseLost) as gone:
            return type(gone).__name__
        except DatabaseUnavailable:
            raise
        except Exception as error:  # noqa: BLE001 - one bad row must not stop those behind it
            await self.hand_back(leases, error)
            return "failed"

    async def hand_back(self, leases: Sequence[Lease], error: Exception) -> None:
        """Queues leased rows again after a delay, or marks them dead if this was their last attempt.

        An outage of the embedder, however long, is no fault of a row, and nor is a key that this process was not given:
        the attempt does not count. The rows wait for as long as the outage has lasted, or for the key the longest time.
        Nor is it the row's fault if the worker is being stopped: then ``serve`` releases the rows.
        """
        if is_cancelled():
            return
        pace = self.pace
        no_fault = isinstance(error, EmbedderUnavailable | MasterKeyMismatch)
        waited_s = pace.backoff_max_s
        if isinstance(error, EmbedderUnavailable):
            self._outage_batch, now = leases[0].lease_token, time.monotonic()
            self._outage_began = now if self._outage_began is None else self._outage_began
            waited_s = max(pace.backoff_s, now - self._outage_began)
        name = type(error).__name__  # alone: a message could quote what the user wrote
        dead = [lease.attempts >= pace.max_attempts and not no_fault for lease in leases]
        async with self.database.as_worker() as connection:
            for lease, ends in zip(leases, dead, strict=True):
                delay = self._backoff(1, waited_s) if no_fault else self._backoff(lease.attempts)
                ending: statements.Ending = "outage" if no_fault else "dead" if ends else "failed"
                await connection.execute(statements.hand_back(lease, name, delay, ending, self.table))
        attempts = max(lease.attempts for lease in leases)
        log.warning(self.failed_event, error=name, rows=len(leases), attempts=attempts, dead=any(dead))

    def _backoff(self, attempts: int, first_s: float | None = None) -> timedelta:
        """Returns the delay after ``attempts`` failed attempts; a random part keeps rows from becoming due together."""
        first_s = self.pace.backoff_s if first_s is None else first_s
        delay_s = min(self.pace.backoff_max_s, first_s * 2 ** min(attempts - 1, MOST_DOUBLINGS))
        return timedelta(seconds=delay_s * (0.5 + 0.5 * self.rng.random()))

    async def release(self, leases: Sequence[Lease]) -> None:
        """Queues leased rows again at once, because the work did not begin or was stopped; the attempt does not count.

        Rows that are finished, or whose lease has ended, stay unchanged: ``take`` ends a lease that ran out, so that a
        row that holds up each of its workers uses up its attempts.
        """
        queue = self.table
        unused = {"attempts": queue.c.attempts - 1, "available_at": func.now(), "lease_token": None}
        if leases:
            async with self.database.as_worker() as connection:
                for lease in leases:
                    row = update(queue).where(is_held(queue, lease), queue.c.available_at > func.now())
                    await connection.execute(row.values(unused))

    async def renew(self, lease: Lease) -> None:
        """Restarts the time of a lease; called before each request to a language model, which may take most of a lease.

        Raises:
            LeaseLost: the lease ended, because earlier cases of the batch took too long; do not ask the model, because
                another worker may ask it.
        """
        async with self.database.as_worker() as connection:
            row = update(self.table).where(is_held(self.table, lease))
            renewed = await connection.execute(row.values(available_at=func.now() + self.pace.lease))
        if renewed.rowcount != 1:
            raise LeaseLost("the lease ran out, or the row is gone")
