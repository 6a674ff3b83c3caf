"""Revoked tokens, and services that restarted the memory of an erased user, as this process knows them.

The database is read when a token is checked and the last answer is older than REFRESH_S, once for all requests: a
revoked token stops within two seconds on every replica; without requests there is no read. Every token is refused
while the last answer is older than MAX_AGE_S.
"""

import asyncio
import hashlib
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import func, or_, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.database.database import Database
from retrieval.database.rest import Rest
from retrieval.database.rows import Rows
from retrieval.errors import CasebankError, DatabaseUnavailable
from retrieval.tables.audit import readmissions
from retrieval.tables.keys import token_revocations
from retrieval.telemetry import log

REFRESH_S, STALE_S = 1.0, 1.5
"""Age of the last answer, in seconds, from which the database is read again beside the request, and before it."""
MAX_AGE_S = 60.0
_OVERLAP = timedelta(minutes=5)
"""Span that is always read again: a row with a lower number may commit after one with a higher."""


def sha256(text: str) -> bytes:
    """Returns the digest under which a name or the id of a token is stored; an issuer may choose any text as an id."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()


@dataclass(slots=True)
class Revocations:
    """Revocations known to this process; empty until the first refresh.

    Attributes:
        rest: state of the process, awake or at rest, with the database to read; None: only calls of ``refresh`` read.
    """

    rest: Rest | None = None
    clock: Callable[[], float] = time.monotonic
    _tokens: set[bytes] = field(default_factory=set)
    _subjects: dict[bytes, datetime] = field(default_factory=dict)
    _readmitted: dict[tuple[bytes, bytes], datetime] = field(default_factory=dict)
    _last: tuple[int, int] = (0, 0)
    _refreshed_at: float | None = None
    _refreshing: asyncio.Task[None] | None = None

    def revoked(self, subject: str, jti: str | None, issued_at: datetime) -> bool:
        """Returns whether a token is revoked; ``issued_at`` is its earliest time of issue.

        Raises:
            DatabaseUnavailable: the last refresh is too long ago.
        """
        if self._refreshed_at is not None and self.clock() - self._refreshed_at > MAX_AGE_S:
            raise DatabaseUnavailable("the revoked tokens are not known: the database does not answer")
        if jti is not None and sha256(jti) in self._tokens:
            return True
        until = self._subjects.get(sha256(subject)) if self._subjects else None
        return until is not None and issued_at <= until

    def admitted(self, user_sub: str, actor: str) -> datetime | None:
        """Returns when the service ``actor`` last restarted the memory of this erased user; None: never."""
        return self._readmitted.get((sha256(user_sub), sha256(actor))) if self._readmitted else None

    def admit(self, user_sub: str, actor: str, at: datetime) -> None:
        """Notes that the service ``actor`` restarted the memory of this erased user."""
        self._note_admitted(sha256(user_sub), sha256(actor), at)

    def refuse(self, jti: str) -> None:
        """Refuses the token with this id, before the next refresh."""
        self._tokens.add(sha256(jti))

    async def refresh(self, database: Database) -> None:
        """Reads the revocations that were stored in the database since the last refresh.

        Raises:
            DatabaseUnavailable: the revocations known so far stay in force.
        """
        async with database.as_worker() as connection:
            revoked, admitted = self._last
            for row in await connection.execute(revoked_since(revoked)):
                if row.jti_sha256 is not None:
                    self._tokens.add(bytes(row.jti_sha256))
                elif row.subject_sha256 is not None and row.issued_before is not None:
                    subject = bytes(row.subject_sha256)
                    self._subjects[subject] = max(row.issued_before, self._subjects.get(subject, row.issued_before))
                revoked = max(revoked, row.number)
            for row in await connection.execute(admitted_since(admitted)):
                self._note_admitted(row.user_sha256, row.actor_sha256, row.admitted_at)
                admitted = max(admitted, row.number)
        self._last = revoked, admitted
        self._refreshed_at = self.clock()

    async def fresh(self) -> None:
        """Prepares for a request: refreshes revocations older than REFRESH_S; the known ones stay if that fails."""
        if self.rest is None:
            return
        await self.rest.wake()
        age_s = math.inf if self._refreshed_at is None else self.clock() - self._refreshed_at
        if age_s > REFRESH_S:
            if self._refreshing is None:
                self._refreshing = asyncio.create_task(self._refresh(self.rest.database))
            if age_s > STALE_S:
                await asyncio.shield(self._refreshing)

    async def _refresh(self, database: Database) -> None:
        try:
            await self.refresh(database)
        except CasebankError as error:
            log.warning("revocations.not_refreshed", error=type(error).__name__)
        finally:
            self._refreshing = None

    def _note_admitted(self, user: bytes, actor: bytes, at: datetime) -> None:
        key = bytes(user), bytes(actor)
        self._readmitted[key] = max(at, self._readmitted.get(key, at))


def revoked_since(number: int) -> Rows:
    """Returns the statement for the revocations with a higher number whose tokens could still be accepted."""
    row = token_revocations.c
    # a token is accepted for the leeway after its end, which is shorter
    alive = or_(row.expires_at.is_(None), row.expires_at > func.now() - _OVERLAP)
    return select(token_revocations).where(alive, or_(row.number > number, row.revoked_at > func.now() - _OVERLAP))


def admitted_since(number: int) -> Rows:
    """Returns the statement for the restarts of erased users' memories with a higher number."""
    row = readmissions.c
    return select(readmissions).where(or_(row.number > number, row.admitted_at > func.now() - _OVERLAP))


def listed() -> Rows:
    """Returns the statement for every revocation, the newest first."""
    return select(token_revocations).order_by(token_revocations.c.number.desc())


@dataclass(frozen=True, slots=True)
class Revocation:
    """A revocation of one token by its id, or of all tokens of a subject that were issued up to a time.

    Attributes:
        jti: id of the one token; None: all tokens of the subject.
        subject: subject of the tokens; None: unknown, for the one token.
        expires_at: time of expiry of the one token; None: unknown.
    """

    why: str
    jti: str | None = None
    subject: str | None = None
    expires_at: datetime | None = None


async def revoke(connection: AsyncConnection, revocation: Revocation) -> datetime:
    """Stores the revocation and returns its time, by the database's clock; the connection is the worker's."""
    await connection.execute(text("DELETE FROM token_revocations WHERE expires_at < now() - interval '1 day'"))
    whole = revocation.jti is None
    values = {
        "jti_sha256": None if revocation.jti is None else sha256(revocation.jti),
        "subject_sha256": None if revocation.subject is None else sha256(revocation.subject),
        "issued_before": func.clock_timestamp() if whole else None,
        "expires_at": revocation.expires_at,
        "why": revocation.why,
    }
    kept = token_revocations.insert().values(values).returning(token_revocations.c.revoked_at)
    at: datetime = (await connection.execute(kept)).scalar_one()
    return at


async def use_up(connection: AsyncConnection, jti: str, expires_at: datetime, why: str) -> bool:
    """Uses up a single-use token and returns whether this was its first use; the connection is the worker's.

    Of several concurrent calls, on any replica, one is the first.
    """
    digest = sha256(jti)
    lock = int.from_bytes(digest[:8], signed=True)
    await connection.execute(select(func.pg_advisory_xact_lock(lock)))
    used = select(token_revocations.c.number).where(token_revocations.c.jti_sha256 == digest).limit(1)
    if await connection.scalar(used) is not None:
        return False
    await revoke(connection, Revocation(why, jti, expires_at=expires_at))
    return True
