"""Every key starts with the user, in the schema and in the database."""

import asyncpg
import pytest
from sqlalchemy import ForeignKeyConstraint, PrimaryKeyConstraint, Table, UniqueConstraint

from tests.retrieval.database.conftest import NAMES, TABLES


@pytest.mark.parametrize("table", TABLES, ids=NAMES)
def test_every_key_of_the_schema_starts_with_the_user(table: Table):
    keys = [c for c in table.constraints if isinstance(c, PrimaryKeyConstraint | UniqueConstraint)]
    foreign = [c for c in table.constraints if isinstance(c, ForeignKeyConstraint)]
    assert any(isinstance(key, PrimaryKeyConstraint) for key in keys)
    assert {key.columns[0].name for key in [*keys, *foreign]} == {"user_sub"}
    assert {key.elements[0].column.name for key in foreign} <= {"user_sub"}
    assert {next(iter(index.columns)).name for index in table.indexes if index.unique} <= {"user_sub"}


async def test_every_key_in_the_database_starts_with_the_user(database_url: str):
    connection = await asyncpg.connect(database_url.replace("+asyncpg", ""))
    firsts = await connection.fetch(
        """
        SELECT conname AS name, attname AS first FROM pg_constraint
        JOIN pg_attribute ON attrelid = conrelid AND attnum = conkey[1]
        WHERE connamespace = 'public'::regnamespace AND contype IN ('p', 'u', 'f', 'x')
        UNION ALL
        SELECT conname, attname FROM pg_constraint JOIN pg_attribute ON attrelid = confrelid AND attnum = confkey[1]
        WHERE connamespace = 'public'::regnamespace AND contype = 'f'
        UNION ALL
        SELECT indexrelid::regclass::text, attname FROM pg_index JOIN pg_class ON pg_class.oid = indrelid
        JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0]
        WHERE relnamespace = 'public'::regnamespace AND indisunique
        """
    )
    await connection.close()
    assert len(firsts) > 3 * len(TABLES)
    assert {row["name"] for row in firsts if row["first"] != "user_sub"} == {"alembic_version_pkc"}
