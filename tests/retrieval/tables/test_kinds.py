"""The enumerations in code and the check constraints of a migrated database are the same, value by value."""

import re
from collections.abc import AsyncIterator
from typing import Literal, get_args, get_origin

import asyncpg
import pytest

from app.postgres.pools import dsn
from retrieval.tables import kinds

COLUMNS = {
    "CaseKind": "cases.kind",
    "CaseStatus": "cases.status",
    "RunOutcome": "cases.outcome",
    "RunStatus": "runs.status",
    "RewardSource": "rewards.source",
    "Arm": "decisions.arm",
    "PolicyStatus": "policies.status",
    "ProcedureKind": "procedures.kind",
    "ProcedureOrigin": "procedures.origin",
    "InsertedStatus": "inserted_memories.status",
    "ReflectionStatus": "reflections.status",
    "ReviewVerdict": "procedure_reviews.verdict",
    "ProcedureStatus": "procedures.status",
    "AbstractionLevel": "procedures.level",
    "Rewrite": "profiles.rewrite",
    "AnalystChoice": "profiles.analyst",
    "Abstraction": "profiles.abstraction",
    "SummaryChoice": "profiles.session_summary",
    "SessionStatus": "sessions.status",
    "FactKind": "facts.kind",
    "FactOrigin": "facts.origin",
    "Speaker": "facts.said_by",
    "MemoryKind": "memories.kind",
    "MemoryStatus": "memories.status",
    "FindingKind": "findings.kind",
    "LlmPurpose": "llm_usage.purpose",
    "MasterKeyStatus": "master_keys.status",
}
"""Which column each enumeration is of."""
OF_NO_COLUMN = {"FindingStatus", "ToolKind"}
"""A setting, what is only answered, and what stands within a JSON column, where the API alone checks it."""

CHECKS_OF_ONE_COLUMN = """
SELECT r.relname || '.' || a.attname AS of, pg_get_constraintdef(c.oid) AS definition
FROM pg_constraint c
JOIN pg_class r ON r.oid = c.conrelid
JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1]
WHERE c.contype = 'c' AND cardinality(c.conkey) = 1 AND c.connamespace = 'public'::regnamespace
"""


@pytest.fixture
async def owner(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(dsn(database_url))
    yield connection
    await connection.close()


def in_code() -> dict[str, set[str]]:
    """The values of each enumeration of the module, by its name."""
    listed = {name: set(get_args(kind)) for name, kind in vars(kinds).items() if get_origin(kind) is Literal}
    return {name: values for name, values in listed.items() if name not in OF_NO_COLUMN}


async def in_database(owner: asyncpg.Connection) -> dict[str, set[str]]:
    """The values that a check constraint lists, by table and column; constraints of another kind list none."""
    rows = await owner.fetch(CHECKS_OF_ONE_COLUMN)
    values = {row["of"]: set(re.findall(r"'([^']*)'::text", row["definition"])) for row in rows}
    return {column: listed for column, listed in values.items() if listed}


def test_every_enumeration_in_code_is_of_a_column():
    assert set(in_code()) == set(COLUMNS)


async def test_every_column_of_a_fixed_choice_may_have_just_the_values_in_code(owner: asyncpg.Connection):
    assert await in_database(owner) == {COLUMNS[name]: values for name, values in in_code().items()}


async def test_a_value_that_only_the_database_knows_is_seen(owner: asyncpg.Connection):
    known = await in_database(owner)
    change = owner.transaction()
    await change.start()
    await owner.execute("ALTER TABLE cases DROP CONSTRAINT cases_kind_check")
    await owner.execute("ALTER TABLE cases ADD CHECK (kind IN ('task', 'subtask', 'tool', 'dream'))")
    assert await in_database(owner) == known | {"cases.kind": {"task", "subtask", "tool", "dream"}}
    await change.rollback()
    assert await in_database(owner) == known


async def test_a_column_of_a_fixed_choice_that_the_code_does_not_know_is_seen(owner: asyncpg.Connection):
    known = await in_database(owner)
    change = owner.transaction()
    await change.start()
    await owner.execute("ALTER TABLE audit ADD CHECK (action = 'retain')")
    assert set(await in_database(owner)) - set(known) == {"audit.action"}
    await change.rollback()
