"""Readmission of an erased user, by an explicit call that confirms the erasure, never by a late request."""

import hashlib
from datetime import UTC, datetime

from sqlalchemy import Select, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.sql.dml import ReturningInsert

from retrieval.database.database import Database
from retrieval.errors import NotFound
from retrieval.tables.audit import erasures, readmissions
from writer.audit import Change, note
from writer.author import Author
from writer.errors import ErasureNotConfirmed


async def begin_again(database: Database, author: Author, erased_at: datetime) -> datetime:
    """Admits the author's tokens for an erased user again, and returns the time of admission, by the database's clock.

    A user's own token needs no readmission; it only has to be newer than the erasure.

    Raises:
        NotFound: the user was never erased.
        ErasureNotConfirmed: `erased_at` is not the time of the last erasure.
        UserErased: the user's own token is older than the erasure, or the user was erased again in the meantime.
    """
    async with database.as_worker() as connection:
        last = await connection.scalar(last_erasure(author.user_sub))
        if last is None:
            raise NotFound("this user was never erased")
        if last != erased_at:
            raise ErasureNotConfirmed(f"the user's last erasure was at {last.astimezone(UTC).isoformat()}")
        own = author.actor == author.user_sub
        since = author.authorised_at if own else (await connection.execute(admit(author))).scalar_one()
    async with database.as_user(author.user_sub, since) as connection:
        await note(
            connection,
            Change.of((author.user_sub, None), author.actor, "begin_again", erased_at=erased_at.isoformat()),
        )
    return since


def last_erasure(user_sub: str) -> Select[datetime]:
    """Returns the statement that selects, in the worker's role, the time of the user's last erasure."""
    digest = hashlib.sha256(user_sub.encode()).hexdigest()
    return select(func.max(erasures.c.erased_at)).where(erasures.c.user_sub == digest)


def admit(author: Author) -> ReturningInsert[datetime]:
    """Returns a statement that lets an author act for an erased user again, and selects the time of admission."""
    values = {
        "user_sha256": hashlib.sha256(author.user_sub.encode()).digest(),
        "actor_sha256": hashlib.sha256(author.actor.encode()).digest(),
    }
    return insert(readmissions).values(values).returning(readmissions.c.admitted_at)
