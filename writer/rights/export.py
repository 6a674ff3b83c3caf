"""Export of all data of a user, decrypted, as one JSON object for each row."""

import asyncio
import typing
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import date, datetime
from uuid import UUID

from pydantic import JsonValue
from sqlalchemy import ARRAY, REAL, LargeBinary, RowMapping, Table, cast, func, literal, select, tuple_

from retrieval.database.database import Database
from retrieval.database.rows import Rows
from retrieval.errors import SealBroken
from retrieval.sealed import Part
from retrieval.tables.cases import case_embeddings, cases
from retrieval.tables.decisions import decisions
from retrieval.tables.failures import failures
from retrieval.tables.memories import facts, knowledge, memories
from retrieval.tables.metadata import USER_TABLES
from retrieval.tables.runs import checkpoints, findings, run_steps, runs
from retrieval.tables.sessions import session_summaries, turns
from writer.privacy.keys import Keyring
from writer.privacy.words import Words

PAGE = 1_000
"""Number of rows of a table in memory at a time."""
PAGE_OF_CASES = 32
"""Number of rows in memory at a time, for tables with payloads, because a payload may have megabytes."""
PAGE_BYTES = 4 << 20
"""Sealed bytes in memory at a time, apart from those of a page's last row."""

_LEFT_OUT = {
    "cases": "search_text search_vector terms moves request_hash lease_token",
    "decisions": "query_group",
    "advice": "fix_ids request sign",
    "failures": "call error fix fix_id sign tool",
    "findings": "content_hash path_hash place_keys place_marks query_hash terms",
    "procedures": "search_vector",
    "replays": "fit",
    "facts": "said slot",
    "knowledge": "said",
    "checkpoints": "namespace task thread",
    "sessions": "lease_token",
    "inserted_memories": "lease_token",
    "memories": "search_text search_vector lease_token",
    "turns": "call_hash",
    "reflections": "lease_token",
    "user_keys": "wrapped_key master_key",
}
"""Columns that the export leaves out, by table: derived data, internal state, and secrets of the installation."""


async def export(database: Database, keyring: Keyring, user_sub: str) -> AsyncIterator[dict[str, JsonValue]]:
    """Yields each row of the user as JSON values, with its table as ``type``.

    Tables come in an order in which rows come after the rows that they refer to, and rows by primary key.

    Rows that are written during the export may be missing. A row that does not decrypt comes with its sealed bytes in
    hex and ``unreadable``.

    Raises:
        DatabaseUnavailable: the export is not complete.
    """
    async with database.as_worker() as connection:
        began_at = (await connection.execute(select(func.now()))).scalar_one()
    async with database.as_user(user_sub, began_at) as connection:
        words = await keyring.find(connection, user_sub)
    for table in reversed(USER_TABLES):
        size = PAGE_OF_CASES if table in {cases, checkpoints, run_steps, turns} else PAGE
        after: RowMapping | None = None
        at_once = 1 if size == PAGE_OF_CASES else PAGE
        while True:
            async with database.as_user(user_sub, began_at) as connection:
                rows = (await connection.execute(page(user_sub, table, after, size))).mappings().all()
            if not rows:
                break
            for first in range(0, len(rows), at_once):
                for each in await asyncio.to_thread(_exported, words, table, rows[first : first + at_once]):
                    yield each
            after = rows[-1]


def _exported(words: Words | None, table: Table, rows: Sequence[RowMapping]) -> list[dict[str, JsonValue]]:
    exported = []
    for row in rows:
        try:
            values = dict(row) if words is None else _opened(words, table, row)
        except SealBroken:
            values = {**row, "unreadable": True}
        exported.append({"type": table.name, **{name: _as_json(value) for name, value in values.items()}})
    return exported


def _opened(words: Words, table: Table, row: RowMapping) -> dict[str, object]:
    if table is cases:
        return {**words.opened(row), "payload": words.open("payload", row["payload"], row["id"])}
    if table is decisions:
        told = None if row["told"] is None else words.open("told", row["told"], row["id"])
        return {**words.open_query(row), "told": told}
    if table is not runs and table not in _SEALED:
        return dict(row)
    rest = {name: value for name, value in row.items() if name != "words"}
    if table is runs:
        return {**rest, "task": words.open_run(row["id"], row["words"])}
    part, *place = _SEALED[table]
    numbers = [row[name] for name in place]
    if "payload" in row:
        return {**rest, "payload": words.open(part, row["payload"], *numbers)}
    return {**rest, **words.open(part, row["words"], *numbers)}


_SEALED: Mapping[Table, tuple[Part, *tuple[str, ...]]] = {
    failures: ("failure", "case_id", "place"),
    run_steps: ("step", "run_id", "number"),
    findings: ("finding", "run_id", "step", "part"),
    turns: ("turn", "session_id", "number"),
    session_summaries: ("summary", "session_id", "last_turn"),
    facts: ("fact", "id"),
    knowledge: ("knowledge", "id"),
    checkpoints: ("checkpoint", "id"),
}
"""Parts that are sealed in the rows of a table, with the columns of the row and place that the bytes are bound to."""


def page(user_sub: str, table: Table, after: RowMapping | None, size: int) -> Rows:
    """Returns the statement that selects the user's next rows of a table, in the order of the primary key.

    It selects at most ``size`` rows, and none after PAGE_BYTES sealed bytes; no row: the page before was the last.
    """
    key = list(table.primary_key.columns)  # with the user: a table may have one row for each
    # vectors as arrays of numbers, with pgvector or without it
    left_out = _LEFT_OUT.get(table.name, "").split()
    wanted = [column for column in table.c if column.name not in left_out]
    vectors = {case_embeddings.c.embedding, memories.c.embedding}
    shown = (cast(column, ARRAY(REAL)).label(column.name) if column in vectors else column for column in wanted)
    statement = select(*shown).where(table.c.user_sub == user_sub)
    if after is not None:
        last = [literal(after[column.name], column.type) for column in key]
        statement = statement.where(tuple_(*key) > tuple_(*last))
    sealed = [func.coalesce(func.octet_length(column), 0) for column in wanted if isinstance(column.type, LargeBinary)]
    before = func.sum(sum(sealed, literal(0))).over(order_by=key, rows=(None, -1))
    some = statement.add_columns(before.label("bytes_before")).order_by(*key).limit(size).subquery(table.name)
    fitting = select(*(column for column in some.c if column.name != "bytes_before"))
    fitting = fitting.where(func.coalesce(some.c.bytes_before, 0) < PAGE_BYTES)
    return fitting.order_by(*(some.c[column.name] for column in key))


def _as_json(value: object) -> JsonValue:
    """Returns the value for JSON: ids and hashes in hex, times in ISO 8601."""
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, date | datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list):
        return [_as_json(item) for item in value]
    return typing.cast("JsonValue", value)  # the other types of columns are JSON's own
