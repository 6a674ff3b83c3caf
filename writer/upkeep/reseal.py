"""Rewrites older rows after a change of the setting that decides whether their words are encrypted.

All readers know both forms, so the service keeps running. A call that was interrupted can be repeated; it goes on where
it stopped.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any
from uuid import UUID

from sqlalchemy import Table, bindparam, select, update

from retrieval.database.database import Database
from retrieval.database.rows import Rows
from retrieval.errors import SealBroken, UserErased
from retrieval.tables.cases import cases
from retrieval.tables.decisions import decisions
from retrieval.telemetry import log
from writer.privacy.keys import Keyring
from writer.privacy.master_keys import MasterKeyMismatch
from writer.privacy.words import Words, readable
from writer.profiles import Profile, each_owner, lock_profile
from writer.retain.prepare import message_hash

BATCH = 256
"""Maximum number of rows that one transaction rewrites."""

Progress = Callable[[int], object]
"""A callback that gets the number of rows that each transaction rewrote."""

_COLUMNS = {
    cases: ("task", "plan", "effects", "words", "message_hash"),
    decisions: ("query", "rewritten", "words", "query_group"),
}
"""The columns that differ between rows with encrypted and with plain words, by table."""


async def reseal_all(database: Database, keyring: Keyring, *, progress: Progress = lambda _count: None) -> int:
    """Rewrites all cases and decisions that do not have the form of the keyring's setting, encrypted or plain words.

    Returns the number of changed rows. A row that does not decrypt stays as it is.

    Raises:
        DatabaseUnavailable: the rows changed so far stay; a further call changes the others.
    """
    total = 0
    async for profile in each_owner(database):
        with suppress(UserErased):
            try:
                for table in _COLUMNS:
                    after: UUID | None = UUID(int=0)
                    while after is not None:
                        after, done = await _reseal_some(database, keyring, profile, table, after)
                        total += done
                        progress(done)
            except (SealBroken, MasterKeyMismatch):  # one user's key is a matter of that user
                log.warning("reseal.refused", why="a user's key does not open")
    return total


async def _reseal_some(
    database: Database, keyring: Keyring, profile: Profile, table: Table, after: UUID
) -> tuple[UUID | None, int]:
    """Rewrites up to BATCH rows with ids above ``after`` in one transaction; returns the last id, and how many.

    The id is None if there was no such row.
    """
    changed: list[dict[str, Any]] = []
    async with database.as_user(profile.user_sub, profile.seen_at) as connection:
        # the worker may be about to merge a run into one of these cases
        await lock_profile(connection, profile.user_sub, profile.agent_key)
        other_form = in_other_form(profile, table, after, sealed=not keyring.seals_words)
        rows = (await connection.execute(other_form)).mappings().all()
        if rows:
            words = await keyring.find_or_make(connection, profile.user_sub)
            change = _sealed if keyring.seals_words else _opened
            changed = list(readable(lambda row: change(words, table, row), rows))
        if len(changed) < len(rows):
            log.warning("reseal.refused", why="rows do not decrypt", rows=len(rows) - len(changed))
        if changed:
            values = [{f"b_{name}": value for name, value in row.items()} for row in changed]
            one = update(table).where(table.c.user_sub == profile.user_sub, table.c.id == bindparam("b_id"))
            kept = {"updated_at": cases.c.updated_at} if table is cases else {}  # a reader sees no change
            new = {name: bindparam(f"b_{name}", type_=table.c[name].type) for name in _COLUMNS[table]}
            await connection.execute(one.values(kept | new), values)
    return (rows[-1]["id"] if rows else None), len(changed)


def in_other_form(profile: Profile, table: Table, above: UUID, *, sealed: bool) -> Rows:
    """Returns a statement that selects and locks up to BATCH rows of a table whose words are sealed, or else plain.

    Their ids are higher than ``above``.
    """
    form = table.c.words.is_not(None) if sealed else table.c.words.is_(None)
    columns = [table.c[name] for name in ("id", *_COLUMNS[table])]
    mine = [table.c.user_sub == profile.user_sub, table.c.id > above]
    if table is cases:
        mine.append(table.c.agent_key == profile.agent_key)
    return select(*columns).where(*mine, form).order_by(table.c.id).limit(BATCH).with_for_update()


def _sealed(words: Words, table: Table, row: Mapping[Any, Any]) -> dict[str, Any]:
    """Returns the row's new columns: its words encrypted in ``words``, and no word left in the plain columns."""
    if table is cases:
        return {**row, **words.seal_case(row["id"], row["task"], row["plan"], row["effects"])}
    return {
        "id": row["id"],
        "query": "",
        "rewritten": None,
        "words": words.seal_query(row["id"], row["query"], row["rewritten"]),
        "query_group": words.group_of(row["query"]),
    }


def _opened(words: Words, table: Table, row: Mapping[Any, Any]) -> dict[str, Any]:
    """Returns the row's new columns: its words decrypted into the plain columns."""
    if table is cases:
        opened = words.opened(row)
        return {**opened, "words": None, "message_hash": message_hash(opened["task"], opened["plan"])}
    return {**words.open_query(row), "words": None, "query_group": None}
