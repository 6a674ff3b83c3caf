"""Erasure: everything of a user in one transaction, a tombstone against whoever is still at work, and a receipt.

What others' rows say of the user, and the planner's statistics, follow in transactions of their own: if that breaks
off, repeating the erasure does the rest.
"""

from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import Delete, Select, Table, and_, delete, func, insert, select, text
from sqlalchemy.sql.dml import ReturningInsert

from retrieval.database.database import Database
from retrieval.tables.decisions import decisions
from retrieval.tables.erasures import erasures
from retrieval.tables.metadata import USER_TABLES
from writer.rights.elsewhere import digest, rename
from writer.training.shared_prior import forget

_GATHER = text("SELECT casebank_gather_statistics()")


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was erased and what a second look found left, by table; it names the user by digest alone."""

    user_digest: str
    erased_at: datetime
    """By the database's clock; whoever was authorised up to then is refused from now on."""
    rows: dict[str, int]
    residue: dict[str, int]
    priors_dropped: int = 0
    """Shared priors that the user contributed to; heads that began there stop serving until they are trained again."""
    renamed: dict[str, int] = field(default_factory=dict)
    """Rows of others in which the name was, by table and column; the tombstone's is there now."""
    names_left: dict[str, int] = field(default_factory=dict)

    @property
    def keys_destroyed(self) -> int:
        """Returns how many keys went: 1, or 0 for a user who never retained anything."""
        return self.rows["user_keys"]

    @property
    def clean(self) -> bool:
        """Returns whether no row of the user, and none that names the user, was left."""
        return not any(self.residue.values()) and not any(self.names_left.values())

    def as_dict(self) -> dict[str, object]:
        """Returns the receipt as JSON values."""
        return {
            "user_sha256": self.user_digest,
            "erased_at": self.erased_at.isoformat(),
            "rows": self.rows,
            "keys_destroyed": self.keys_destroyed,
            "priors_dropped": self.priors_dropped,
            "residue": self.residue,
            "renamed": self.renamed,
            "names_left": self.names_left,
            "clean": self.clean,
        }


async def erase(database: Database, user_sub: str) -> Receipt:
    """Erases every row of the user, and the key that backups would need, and returns the receipt.

    Waits for the user's transactions under way, and they for it. Who was authorised before is refused after,
    the worker included; who is authorised later begins again. A user who has nothing gets a receipt of zeros.

    Raises:
        DatabaseUnavailable: nothing was erased, or nobody can say whether it was; repeat.
    """
    user_digest = digest(user_sub)
    async with database.as_eraser(user_sub) as connection:
        rows = {table.name: (await connection.execute(delete_rows(user_sub, table))).rowcount for table in USER_TABLES}
        priors = await forget(connection, user_sub)
        # last, for its time must be later than every look that anybody took at these rows
        erased_at = (await connection.execute(bury(user_digest, rows))).scalar_one()
    renamed, names_left = await rename(database, user_sub)
    async with database.as_eraser(user_sub) as connection:
        await connection.execute(_GATHER)  # without the user among the samples
    async with database.as_eraser(user_sub) as connection:
        residue = {
            table.name: (await connection.execute(count_remaining(user_sub, table, erased_at))).scalar_one()
            for table in USER_TABLES
        }
    return Receipt(user_digest, erased_at, rows, residue, priors, renamed, names_left)


def delete_rows(user_sub: str, table: Table) -> Delete:
    """Returns the statement that deletes all the user's rows of the table."""
    return delete(table).where(table.c.user_sub == user_sub)


def bury(user_digest: str, rows: dict[str, int]) -> ReturningInsert[datetime]:
    """Returns the statement that records the erasure and answers its time, by the database's clock."""
    values = {"user_sub": user_digest, "erased_at": func.clock_timestamp(), "receipt": {"rows": rows}}
    return insert(erasures).values(values).returning(erasures.c.erased_at)


def count_remaining(user_sub: str, table: Table, erased_at: datetime) -> Select[int]:
    """Returns the statement that counts the user's rows from before the erasure; a user may have begun again since."""
    statement = select(func.count()).select_from(table).where(table.c.user_sub == user_sub)
    if "created_at" in table.c:
        return statement.where(table.c.created_at <= erased_at)
    # a slot is as old as its decision
    mine = and_(decisions.c.user_sub == user_sub, decisions.c.id == table.c.decision_id)
    return statement.join(decisions, mine).where(decisions.c.created_at <= erased_at)
