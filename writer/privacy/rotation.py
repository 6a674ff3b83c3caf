"""Rotation of the master key: wraps every user's key with a new master key, while the service keeps running.

A rotation may be interrupted at any point and started again. One transaction changes one user's key and the count
in the receipt. A key that an erasure destroyed in the meantime does not come back.

    CasebankError
    ├── NothingToRotate      the wanted master key is the only one that this database ever had
    └── RotationOvertaken    a rotation to another master key began while this rotation was running
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import ColumnElement, Select, func, select, update
from sqlalchemy.dialects.postgresql import insert

from retrieval.database.database import Database
from retrieval.errors import CasebankError, SealBroken, UserErased
from retrieval.tables.keys import master_keys, user_keys
from writer.privacy.installation_key import rewrap_all
from writer.privacy.master_keys import LOCK, MasterKeyMismatch, MasterKeys, agree, in_use
from writer.privacy.seal import wrap_key

PAGE = 500
"""Number of users that one statement lists."""


class NothingToRotate(CasebankError):
    """The wanted master key is the only one that this database ever had."""


class RotationOvertaken(CasebankError):
    """A rotation to another master key began while this rotation was running."""


@dataclass(frozen=True, slots=True)
class Rotation:
    """The receipt of a rotation of the master key, over all its restarts.

    Attributes:
        new: fingerprint of the new master key.
        old: fingerprints of the master keys that it replaces.
        began_at: beginning, by the database's clock.
        finished_at: end, by the database's clock; None while some users' keys are not wrapped with the new key.
        rewrapped: number of users whose key was wrapped with the new key.
        left: number of users whose key this process cannot unwrap with its master keys; these keys stay as they are.
        now: true if this call did part of the rotation; False: the rotation was finished before.
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
    """Wraps every user's key with the wanted master key of ``held``, unless that is done, and returns the receipt.

    New users' keys are wrapped with the new key from the beginning. Until the rotation has finished, every process
    needs both keys.

    Raises:
        MasterKeyMismatch: this process lacks a key in use; nothing was changed.
        NothingToRotate: the wanted key is the only one that this database ever had.
        RotationOvertaken: another rotation has begun; users rotated so far stay rotated.
        SealBroken: a key of the installation cannot be unwrapped; users rotated so far stay rotated.
        DatabaseUnavailable: users rotated so far stay rotated; start again.
    """
    begun = await _begin(database, held)
    after = ""
    while True:
        # "since": the time at which the listed users were not erased
        next_users = select(user_keys.c.user_sub, func.now()).where(
            _by_another(held.wanted), user_keys.c.user_sub > after
        )
        async with database.as_worker() as connection:
            users = (await connection.execute(next_users.order_by(user_keys.c.user_sub).limit(PAGE))).all()
        if not users:
            return replace(await _finish(database, held), now=begun)
        for user_sub, since in users:
            await _rewrap(database, held, user_sub, since)
            progress()
        after = users[-1][0]


async def _begin(database: Database, held: MasterKeys) -> bool:
    """Makes the wanted key the current one, unless it is already, and returns whether there is anything to do."""
    async with database.as_worker() as connection:
        await agree(connection, held)
        # a new user's key is wrapped under the shared lock: either before the key changes, or with the new key
        await connection.execute(select(func.pg_advisory_xact_lock(LOCK)))
        needed = (await connection.scalars(in_use())).all()
        held.require(needed)
        if needed == [held.wanted] and not await connection.scalar(_left(held.wanted)):
            rotated = select(master_keys.c.finished_at).where(master_keys.c.fingerprint == held.wanted)
            if (await connection.scalar(rotated)) is None:
                raise NothingToRotate(
                    f"{held.wanted} is the master key that is in use: to rotate, set CASEBANK_MASTER_KEY to a new key"
                    " and CASEBANK_MASTER_KEY_OLD to this one"
                )
            return False
        if needed[0] != held.wanted:
            current = update(master_keys).where(master_keys.c.status == "current")
            await connection.execute(current.values(status="retiring"))
            old = [known for known in needed if known != held.wanted]
            values = {"status": "current", "began_at": func.now(), "replaces": old, "rewrapped": 0, "finished_at": None}
            fresh = insert(master_keys).values(fingerprint=held.wanted, **values)
            # the wanted key may have been the current one before
            await connection.execute(fresh.on_conflict_do_update(index_elements=["fingerprint"], set_=values))
    return True


async def _rewrap(database: Database, held: MasterKeys, user_sub: str, since: datetime) -> None:
    """Wraps the user's key with the wanted master key and counts it; leaves a key that does not open as it is."""
    mine = user_keys.c.user_sub == user_sub, _by_another(held.wanted)
    try:
        # a transaction as this user: an erasure waits for it, and an erased user is refused
        async with database.as_worker({user_sub: since}) as connection:
            row = (await connection.execute(select(user_keys).where(*mine))).one_or_none()
            if row is None:
                return
            key = held.unwrap(row.wrapped_key, row.master_key, user_sub=user_sub)
            wrapped = wrap_key(key, held.by_fingerprint[held.wanted], user_sub=user_sub)
            # only the row that was read, because another rotation may change it too
            changed = update(user_keys).where(*mine, user_keys.c.wrapped_key == row.wrapped_key)
            if not (await connection.execute(changed.values(wrapped_key=wrapped, master_key=held.wanted))).rowcount:
                return
            own = master_keys.c.fingerprint == held.wanted, master_keys.c.status == "current"
            counted = update(master_keys).where(*own).values(rewrapped=master_keys.c.rewrapped + 1)
            if not (await connection.execute(counted)).rowcount:
                raise RotationOvertaken("another rotation has begun meanwhile: let that one finish")
    except (UserErased, SealBroken, MasterKeyMismatch):
        return  # the receipt counts the keys that are left


async def _finish(database: Database, held: MasterKeys) -> Rotation:
    """Retires the old keys, if no user's key is wrapped with them any more, and returns the receipt.

    Wraps the few keys of the installation as well; the lock keeps others from making one at the same time.
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
