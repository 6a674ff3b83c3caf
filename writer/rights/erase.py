"""Erases a user: deletes all rows in one transaction, adds a tombstone that stops running processes, returns a receipt.

Later transactions remove the user's name from rows of other users and from the planner's statistics, and the reasons
for which the user's tokens were revoked. After an interruption, a repeated erasure completes this. An erased user
begins again only by an explicit call that confirms the erasure, never by a late request.
"""

import asyncio
import hashlib
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from sqlalchemy import Select, and_, delete, func, insert, select, text, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.dml import ReturningInsert

from retrieval.database.database import Database
from retrieval.errors import NotFound
from retrieval.tables.audit import audit, erasures, readmissions
from retrieval.tables.cases import cases
from retrieval.tables.decisions import decisions, rewards
from retrieval.tables.keys import token_revocations, user_keys
from retrieval.tables.metadata import USER_TABLES
from retrieval.tables.procedures import procedure_reviews
from writer.audit import note
from writer.author import Author
from writer.errors import ErasureNotConfirmed

_GATHER = text("SELECT casebank_gather_statistics()")

NAMES = (cases.c.source, audit.c.actor, rewards.c.actor, procedure_reviews.c.actor)
"""Columns that may hold a user's name in rows of other users.

The cases come first: the worker copies the name from a case, which it has locked, to the audit.
"""
BATCH = 5_000
"""Maximum number of rows that one transaction changes, so that locks are short."""
TRIES = 20
"""Maximum number of statements that change less than BATCH rows while another transaction locks or adds a row."""
WAIT_S = 0.25


@dataclass(frozen=True, slots=True)
class Receipt:
    """The receipt of an erasure, which names the user only by a digest.

    Attributes:
        user_digest: sha256 of the user's name, in hex.
        erased_at: time of the erasure, by the database's clock; older authorisations are refused from now on.
        rows: number of deleted rows by table.
        residue: number of rows of the user that were found after the deletion, by table.
        renamed: number of rows of other users in which a tombstone replaced the name, by table and column.
        names_left: number of rows of other users that still have the name, by table and column.
    """

    user_digest: str
    erased_at: datetime
    rows: dict[str, int]
    residue: dict[str, int]
    renamed: dict[str, int] = field(default_factory=dict)
    names_left: dict[str, int] = field(default_factory=dict)

    @property
    def keys_destroyed(self) -> int:
        """Returns the number of destroyed keys: 1, or 0 for a user without stored data."""
        return self.rows["user_keys"]

    @property
    def clean(self) -> bool:
        """Returns whether no row of the user and no row with the user's name is left."""
        return not any(self.residue.values()) and not any(self.names_left.values())

    def as_dict(self) -> dict[str, object]:
        """Returns the receipt as JSON values."""
        return {
            "user_sha256": self.user_digest,
            "erased_at": self.erased_at.isoformat(),
            "rows": self.rows,
            "keys_destroyed": self.keys_destroyed,
            "residue": self.residue,
            "renamed": self.renamed,
            "names_left": self.names_left,
            "clean": self.clean,
        }


def digest(user_sub: str) -> str:
    """Returns the digest of a user's name: sha256 in hex."""
    return hashlib.sha256(user_sub.encode()).hexdigest()


def tombstone(user_sub: str) -> str:
    """Returns the tombstone that replaces an erased user's name; equal names have equal tombstones."""
    return f"erased:{digest(user_sub)}"


async def erase(database: Database, user_sub: str) -> Receipt:
    """Erases every row of the user, and the key that opens encrypted backups, and returns the receipt.

    Waits for the user's running transactions. Afterwards, authorisations from before the erasure are refused, those of
    the worker included. A user without data gets a receipt of zeros.

    Raises:
        DatabaseUnavailable: the user may or may not be erased; call it again.
    """
    user_digest = digest(user_sub)
    async with database.as_eraser(user_sub) as connection:
        rows = {
            table.name: (await connection.execute(delete(table).where(table.c.user_sub == user_sub))).rowcount
            for table in USER_TABLES
        }
        # last, because its time must be later than every read of these rows
        erased_at = (await connection.execute(bury(user_digest, rows))).scalar_one()
    async with database.as_worker() as connection:
        await forget_reasons(connection, user_sub)
    renamed, names_left = await rename(database, user_sub)
    async with database.as_eraser(user_sub) as connection:
        await connection.execute(_GATHER)  # without the user among the samples
    residue = {}
    async with database.as_eraser(user_sub) as connection:
        for table in USER_TABLES:
            left = select(func.count()).select_from(table).where(table.c.user_sub == user_sub)
            dated = table
            if "created_at" not in table.c:  # a slot is as old as its decision
                mine = and_(decisions.c.user_sub == user_sub, decisions.c.id == table.c.decision_id)
                left, dated = left.join(decisions, mine), decisions
            # later rows are allowed
            residue[table.name] = (await connection.execute(left.where(dated.c.created_at <= erased_at))).scalar_one()
    return Receipt(user_digest, erased_at, rows, residue, renamed, names_left)


def bury(user_digest: str, rows: dict[str, int]) -> ReturningInsert[datetime]:
    """Returns the statement that stores an erased user's tombstone, and selects the time of the erasure."""
    values = {"user_sub": user_digest, "erased_at": func.clock_timestamp(), "receipt": {"rows": rows}}
    return insert(erasures).values(values).returning(erasures.c.erased_at)


async def forget_reasons(connection: AsyncConnection, user_sub: str) -> None:
    """Blanks the reasons for which the user's tokens were revoked, which may name the user; the tokens stay revoked.

    The connection must be the worker's, which may delete and insert revocations and not change them.
    """
    row = token_revocations.c
    mine = row.subject_sha256 == _sha256(user_sub), row.why != ""
    columns = row.jti_sha256, row.subject_sha256, row.issued_before, row.revoked_at, row.expires_at
    revoked = (await connection.execute(delete(token_revocations).where(*mine).returning(*columns))).mappings().all()
    if revoked:
        await connection.execute(insert(token_revocations), [{**each, "why": ""} for each in revoked])


async def rename(database: Database, user_sub: str) -> tuple[dict[str, int], dict[str, int]]:
    """Replaces the user's name by the tombstone in all rows of other users; may be repeated.

    Returns the number of renamed rows and of remaining rows, by table and column. Rows remain only if other
    transactions held their locks, or went on to write the name, all the time.
    """
    renamed, left = {}, {}
    for column in NAMES:
        table, rows = column.table, column == user_sub
        if not database.citus:  # which can lock the rows of only one user in a statement, and so skips no locked ones
            key = tuple(table.primary_key.columns)
            batch = select(*key).where(rows).limit(BATCH).with_for_update(skip_locked=True)
            rows = tuple_(*key).in_(batch)
        statement = update(table).where(rows).values({column: tombstone(user_sub)})
        named = select(func.count()).select_from(table).where(column == user_sub)
        where = f"{table.name}.{column.name}"
        renamed[where] = waited = 0
        left[where] = BATCH
        while left[where] and waited < TRIES:
            async with database.as_eraser_elsewhere(user_sub) as connection:
                count = (await connection.execute(statement)).rowcount
                if count < BATCH:
                    left[where] = (await connection.execute(named)).scalar_one()
            renamed[where] += count
            waited += count < BATCH
            if left[where] and not count:
                await asyncio.sleep(WAIT_S)
    return renamed, left


async def begin_again(database: Database, author: Author, erased_at: datetime) -> datetime:
    """Admits the author's tokens for an erased user again, and returns the time of admission, by the database's clock.

    A user's own token needs no readmission; it only has to be newer than the erasure.

    Raises:
        NotFound: the user was never erased.
        ErasureNotConfirmed: `erased_at` is not the time of the last erasure.
        UserErased: the user's own token is older than the erasure, or the user was erased again in the meantime.
    """
    async with database.as_worker() as connection:
        times = select(func.max(erasures.c.erased_at)).where(erasures.c.user_sub == digest(author.user_sub))
        last = await connection.scalar(times)
        if last is None:
            raise NotFound("this user was never erased")
        if last != erased_at:
            raise ErasureNotConfirmed(f"the user's last erasure was at {last.astimezone(UTC).isoformat()}")
    since = author.authorised_at
    if author.actor != author.user_sub:
        async with database.as_worker({author.user_sub: erased_at + timedelta(microseconds=1)}) as connection:
            since = (await connection.execute(admit(author))).scalar_one()
    async with database.as_user(author.user_sub, since) as connection:
        await note(connection, author.change(None, "begin_again", erased_at=erased_at.isoformat()))
    return since


def is_gone(user_sub: str) -> Select[bool]:
    """Returns the statement that selects, in the worker's role, whether the user was erased and did not begin anew."""
    stone = select(erasures.c.user_sub).where(erasures.c.user_sub == digest(user_sub))
    key = select(user_keys.c.key_id).where(user_keys.c.user_sub == user_sub)
    return select(and_(stone.exists(), ~key.exists()))


def admit(author: Author) -> ReturningInsert[datetime]:
    """Returns a statement that lets an author act for an erased user again, and selects the time of admission."""
    values = {
        "user_sha256": _sha256(author.user_sub),
        "actor_sha256": _sha256(author.actor),
    }
    return insert(readmissions).values(values).returning(readmissions.c.admitted_at)


def _sha256(name: str) -> bytes:
    return bytes.fromhex(digest(name))
