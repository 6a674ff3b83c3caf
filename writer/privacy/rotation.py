"""Rotation: every user's key wrapped by a new master key, while the service goes on; the users' keys stay as they are.

It may be broken off anywhere and begun again. What it changes it changes user by user, each in one transaction with the
count of the receipt; a key that an erasure destroyed meanwhile is not there to be changed, so none comes back.

    CasebankError
    ├── NothingToRotate      no other master key was ever in use here, nor is one wanted
    └── RotationOvertaken    another rotation, to another master key, has begun meanwhile
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import ColumnElement, Select, Update, func, select, update
from sqlalchemy.dialects.postgresql import Insert, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.database.database import Database
from retrieval.errors import CasebankError, UserErased
from retrieval.tables.keys import master_keys, user_keys
from writer.privacy.installation_key import rewrap_all
from writer.privacy.master_keys import LOCK, MasterKeyMismatch, MasterKeys, agree, in_use
from writer.privacy.seal import SealBroken, wrap_key

PAGE = 500
"""Users that are listed at a time."""


class NothingToRotate(CasebankError):
    """No other master key was ever in use here, nor is one wanted."""


class RotationOvertaken(CasebankError):
    """Another rotation has begun, to another master key."""


@dataclass(frozen=True, slots=True)
class Rotation:
    """What a rotation did, over all the times that it was begun anew: its receipt.

    Attributes:
        new: fingerprint of the master key that every user's key is wrapped by from now on.
        old: fingerprints of those that it takes out of use.
        began_at: by the database's clock.
        finished_at: None while users' keys are left that the new key does not open.
        rewrapped: users whose key was wrapped anew.
        left: users whose key none of the master keys at hand opens, and which stays as it is.
        now: whether this call did any of it; it is done only once.
    """

    new: str
    old: tuple[str, ...]
    began_at: datetime
    finished_at: datetime | None
    rewrapped: int
    left: int
    now: bool = True

    def as_dict(self) -> dict[str, object]:
        """Returns the receipt as JSON values."""
        ended = None if self.finished_at is None else self.finished_at.isoformat()
        return {
            "new_master_key": self.new,
            "old_master_keys": list(self.old),
            "began_at": self.began_at.isoformat(),
            "finished_at": ended,
            "users_rewrapped": self.rewrapped,
            "users_left": self.left,
        }


async def rotate(database: Database, held: MasterKeys, progress: Callable[[], object] = lambda: None) -> Rotation:
    """Wraps every user's key by the wanted master key, and returns the receipt; the others open what is there.

    From its beginning on new users' keys are wrapped by the new one. Until it has finished, every process needs both.
    Where it has finished before, its receipt is returned again.

    Args:
        database: whose users' keys they are.
        held: the new key as the wanted one, and those that are in use.
        progress: is called after each user.

    Raises:
        MasterKeyMismatch: a key that is in use is not held; nothing was changed.
        NothingToRotate: the wanted key is the first that this database has.
        RotationOvertaken: what was done so far stays.
        SealBroken: no key at hand opens one of the installation's own keys; what was done so far stays.
        DatabaseUnavailable: as above; begin again.
    """
    begun = await _begin(database, held)
    after = ""
    while users := await _next_users(database, held.wanted, after):
        for user_sub, since in users:
            await _rewrap(database, held, user_sub, since)
            progress()
        after = users[-1][0]
    return replace(await _finish(database, held), now=begun)


async def _begin(database: Database, held: MasterKeys) -> bool:
    """Makes the wanted key the current one, unless it is, and returns whether there is anything to do."""
    async with database.as_worker() as connection:
        await agree(connection, held)
        # whoever wraps a new user's key holds this shared: they are done before the key changes, or see the new one
        await connection.execute(select(func.pg_advisory_xact_lock(LOCK)))
        needed = (await connection.scalars(in_use())).all()
        held.require(needed)
        if needed == [held.wanted] and not await connection.scalar(_left(held.wanted)):
            await _refuse_unless_rotated(connection, held.wanted)
            return False
        if needed[0] != held.wanted:
            await connection.execute(_retire())
            await connection.execute(_succeed(held.wanted, [known for known in needed if known != held.wanted]))
    return True


async def _refuse_unless_rotated(connection: AsyncConnection, current: str) -> None:
    rotated = select(master_keys.c.finished_at).where(master_keys.c.fingerprint == current)
    if (await connection.scalar(rotated)) is None:
        raise NothingToRotate(
            f"{current} is the master key that is in use: to rotate, set CASEBANK_MASTER_KEY to a new key and"
            " CASEBANK_MASTER_KEY_OLD to this one"
        )


def _retire() -> Update:
    return update(master_keys).where(master_keys.c.status == "current").values(status="retiring")


def _succeed(new: str, old: list[str]) -> Insert:
    """Makes the key the current one; it may have been so before."""
    values = {"status": "current", "began_at": func.now(), "replaces": old, "rewrapped": 0, "finished_at": None}
    statement = insert(master_keys).values(fingerprint=new, **values)
    return statement.on_conflict_do_update(index_elements=["fingerprint"], set_=values)


async def _next_users(database: Database, new: str, after: str) -> list[tuple[str, datetime]]:
    """The next users whose key is wrapped by another master key, and until when they were not erased."""
    statement = select(user_keys.c.user_sub, func.now()).where(_by_another(new), user_keys.c.user_sub > after)
    async with database.as_worker() as connection:
        rows = await connection.execute(statement.order_by(user_keys.c.user_sub).limit(PAGE))
        return [(user_sub, since) for user_sub, since in rows]


async def _rewrap(database: Database, held: MasterKeys, user_sub: str, since: datetime) -> None:
    """Wraps the user's key by the wanted master key and counts that, or leaves a key that none opens as it is."""
    try:
        # entered as this user: an erasure waits, and whoever was erased is not entered
        async with database.as_worker({user_sub: since}) as connection:
            await _rewrap_in(connection, held, user_sub)
    except (UserErased, SealBroken, MasterKeyMismatch):
        return  # it is counted at the end, where it is left


async def _rewrap_in(connection: AsyncConnection, held: MasterKeys, user_sub: str) -> None:
    mine = user_keys.c.user_sub == user_sub, _by_another(held.wanted)
    row = (await connection.execute(select(user_keys).where(*mine))).one_or_none()
    if row is None:
        return
    key = held.unwrap(row.wrapped_key, row.master_key, user_sub=user_sub)
    wrapped = wrap_key(key, held.by_fingerprint[held.wanted], user_sub=user_sub)
    # only what was read: somebody else may be at it
    changed = update(user_keys).where(*mine, user_keys.c.wrapped_key == row.wrapped_key)
    if (await connection.execute(changed.values(wrapped_key=wrapped, master_key=held.wanted))).rowcount:
        counted = update(master_keys).where(master_keys.c.fingerprint == held.wanted, master_keys.c.status == "current")
        if not (await connection.execute(counted.values(rewrapped=master_keys.c.rewrapped + 1))).rowcount:
            raise RotationOvertaken("another rotation has begun meanwhile: let that one finish")


async def _finish(database: Database, held: MasterKeys) -> Rotation:
    """Takes the old keys out of use, if no user's key is wrapped by them any more, and returns the receipt.

    The installation's own keys are few, and follow here: whoever makes one has the lock, too.
    """
    new = held.wanted
    async with database.as_worker() as connection:
        await connection.execute(select(func.pg_advisory_xact_lock(LOCK)))
        await rewrap_all(connection, held)
        left = await connection.scalar(_left(new)) or 0
        mine = (master_keys.c.fingerprint == new, master_keys.c.status == "current")
        if not left:
            done = update(master_keys).where(*mine, master_keys.c.finished_at.is_(None))
            if (await connection.execute(done.values(finished_at=func.now()))).rowcount:
                retiring = update(master_keys).where(master_keys.c.status == "retiring")
                await connection.execute(retiring.values(status="retired"))
        row = (await connection.execute(select(master_keys).where(*mine))).one_or_none()
    if row is None:
        raise RotationOvertaken("another rotation has begun meanwhile: let that one finish")
    return Rotation(new, tuple(row.replaces), row.began_at, row.finished_at, row.rewrapped, left)


def _left(new: str) -> Select[int]:
    return select(func.count()).select_from(user_keys).where(_by_another(new))


def _by_another(new: str) -> ColumnElement[bool]:
    return user_keys.c.master_key.is_distinct_from(new)
