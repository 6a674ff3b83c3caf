"""Export of all data of a user, decrypted, as one JSON object for each row."""

import typing
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import date, datetime
from uuid import UUID

from pydantic import JsonValue
from sqlalchemy import ARRAY, REAL, RowMapping, Table, cast, func, literal, select, tuple_

from retrieval.database.database import Database
from retrieval.database.rows import Rows
from retrieval.tables.cases import case_embeddings, cases
from retrieval.tables.checkpoints import checkpoints
from retrieval.tables.decisions import decisions
from retrieval.tables.facts import facts
from retrieval.tables.failures import failures
from retrieval.tables.findings import findings
from retrieval.tables.knowledge import knowledge
from retrieval.tables.memories import memories
from retrieval.tables.metadata import USER_TABLES
from retrieval.tables.runs import run_steps, runs
from retrieval.tables.sessions import session_summaries, turns
from writer.privacy.keys import Keyring
from writer.privacy.seal import unseal
from writer.privacy.words import Words, words_of

PAGE = 1_000
"""Number of rows of a table in memory at a time."""
PAGE_OF_CASES = 32
"""Number of rows in memory at a time, for tables with payloads, because a payload may have megabytes."""

_LEFT_OUT = {
    "cases": "search_text search_vector terms moves lease_token",
    "decisions": "query_group",
    "advice": "fix_ids sign",
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

    Rows that are written during the export may be missing.

    Raises:
        DatabaseUnavailable: the export is not complete.
    """
    async with database.as_worker() as connection:
        began_at = (await connection.execute(select(func.now()))).scalar_one()
    async with database.as_user(user_sub, began_at) as connection:
        words = await words_of(keyring, connection, user_sub)
    for table in reversed(USER_TABLES):
        opener = None if words is None else _OPENERS.get(table)
        size = PAGE_OF_CASES if table in {cases, checkpoints, run_steps, turns} else PAGE
        after: RowMapping | None = None
        while True:
            async with database.as_user(user_sub, began_at) as connection:
                rows = (await connection.execute(page(user_sub, table, after, size))).mappings().all()
            for row in rows:
                values = dict(row) if opener is None or words is None else opener(words, row)
                yield {"type": table.name, **{name: _as_json(value) for name, value in values.items()}}
            if len(rows) < size:
                break
            after = rows[-1]


def _without_words(row: RowMapping) -> dict[str, object]:
    return {name: value for name, value in row.items() if name != "words"}


_OPENERS: Mapping[Table, Callable[[Words, RowMapping], dict[str, object]]] = {
    cases: lambda words, row: {
        **words.opened(row),
        "payload": unseal(row["payload"], words.key.key, user_sub=words.user_sub, case_id=row["id"]),
    },
    decisions: lambda words, row: {
        **words.open_query(row),
        "told": None if row["told"] is None else words.open_told(row["id"], row["told"]),
    },
    failures: lambda words, row: {
        **_without_words(row),
        **words.open_failure(row["case_id"], row["place"], row["words"]),
    },
    runs: lambda words, row: {**_without_words(row), "task": words.open_run(row["id"], row["words"])},
    run_steps: lambda words, row: {**row, "payload": words.open_step(row["run_id"], row["number"], row["payload"])},
    findings: lambda words, row: {
        **row,
        "payload": words.open_finding(row["run_id"], row["step"], row["part"], row["payload"]),
    },
    turns: lambda words, row: {**row, "payload": words.open_turn(row["session_id"], row["number"], row["payload"])},
    session_summaries: lambda words, row: {
        **row,
        "payload": words.open_summary(row["session_id"], row["last_turn"], row["payload"]),
    },
    facts: lambda words, row: {**_without_words(row), **words.open_fact(row["id"], row["words"])},
    knowledge: lambda words, row: {**_without_words(row), **words.open_knowledge(row["id"], row["words"])},
    checkpoints: lambda words, row: {**_without_words(row), **words.open_checkpoint(row["id"], row["words"])},
}
"""Functions that decrypt a row, for the tables with encrypted columns."""


def page(user_sub: str, table: Table, after: RowMapping | None, size: int) -> Rows:
    """Returns the statement that selects the user's next rows of a table, in the order of the primary key."""
    key = [column for column in table.primary_key.columns if column.name != "user_sub"]
    # vectors as arrays of numbers, with pgvector or without it
    left_out = _LEFT_OUT.get(table.name, "").split()
    wanted = [column for column in table.c if column.name not in left_out]
    vectors = {case_embeddings.c.embedding, memories.c.embedding}
    shown = (cast(column, ARRAY(REAL)).label(column.name) if column in vectors else column for column in wanted)
    statement = select(*shown).where(table.c.user_sub == user_sub)
    if after is not None:
        last = [literal(after[column.name], column.type) for column in key]
        statement = statement.where(tuple_(*key) > tuple_(*last))
    return statement.order_by(*key).limit(size)


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
