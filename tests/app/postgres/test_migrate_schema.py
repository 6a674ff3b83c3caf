"""The schema that the migrations make: the same by every way, with pgvector and without, and as the metadata has it."""

from collections.abc import Iterable
from uuid import uuid4

import asyncpg
import pytest
from alembic.config import Config
from sqlalchemy import Connection

from app.postgres import EmbeddedPostgres
from app.postgres.migrate import migrate, with_alembic
from app.postgres.pools import dsn
from retrieval.tables.cases import INDEXED_DIMENSIONS
from retrieval.tables.metadata import metadata
from tests.catalog import Catalog, catalog, differences
from tests.conftest import new_database

HNSW = {f"case_embeddings_hnsw_{dimension}_idx" for dimension in INDEXED_DIMENSIONS}
"""Indexes that only the migrations know: the metadata must also fit a bank without pgvector."""
DEFINITIONS = {"column": (1, 2, 3, 4, 5, 6, 12), "constraint": range(6), "index": range(8), "sequence": range(8)}
"""Parts of a definition that metadata has, by kind: of a column all but its number, storage, statistics and grants."""


async def read(url: str, statement: str = "SELECT") -> Catalog:
    """Runs the statement as the owner, and reads the database's catalogues."""
    connection = await asyncpg.connect(dsn(url))
    try:
        await connection.execute(statement)
        return await catalog(connection)
    finally:
        await connection.close()


def names(seen: Iterable[str], kind: str) -> set[str]:
    """The names of the objects of that kind."""
    return {name.removeprefix(f"{kind} ") for name in seen if name.startswith(f"{kind} ")}


CHANGES = {
    "column cases.more": "ALTER TABLE cases ADD COLUMN more text",
    "column cases.task": "ALTER TABLE cases ALTER COLUMN task DROP NOT NULL",
    "column cases.source": "ALTER TABLE cases ALTER COLUMN source SET STATISTICS 100",
    "column cases.step_count": "ALTER TABLE cases ALTER COLUMN step_count TYPE bigint",
    "column cases.plan": "COMMENT ON COLUMN cases.plan IS 'steps'",
    "column cases.tags": "GRANT SELECT (tags) ON cases TO casebank_worker",
    "column policies.weights": "ALTER TABLE policies ALTER COLUMN weights SET STORAGE EXTERNAL",
    "column profiles.k": "ALTER TABLE profiles ALTER COLUMN k SET DEFAULT 5",
    "relation sessions": "GRANT TRUNCATE ON sessions TO casebank_service",
    "relation cases": "ALTER TABLE cases NO FORCE ROW LEVEL SECURITY",
    "relation facts": "ALTER TABLE facts SET (fillfactor = 90)",
    "relation rate_limits": "ALTER TABLE rate_limits SET LOGGED",
    "relation jobs": "GRANT CREATE ON SCHEMA public TO casebank_worker; ALTER TABLE jobs OWNER TO casebank_worker",
    "relation everybody": "CREATE VIEW everybody AS SELECT 1 AS one",
    "constraint runs.runs_status_check": "ALTER TABLE runs DROP CONSTRAINT runs_status_check",
    "index cases_queue_idx": "DROP INDEX cases_queue_idx; CREATE INDEX cases_queue_idx ON cases (available_at)",
    "function casebank_index_words()": "ALTER FUNCTION casebank_index_words() SECURITY DEFINER",
    "function casebank_link_hash(bytea,bigint,text)": "ALTER FUNCTION casebank_link_hash STABLE",
    "function casebank_link(audit)": "GRANT EXECUTE ON FUNCTION casebank_link TO PUBLIC",
    "trigger cases.index_words": "ALTER TABLE cases DISABLE TRIGGER index_words",
    "trigger audit.keep": "DROP TRIGGER keep ON audit",
    "policy cases.own_rows": "ALTER POLICY own_rows ON cases USING (true)",
    "policy facts.own_rows": "ALTER POLICY own_rows ON facts TO PUBLIC",
    "sequence readmissions_number_seq": "ALTER SEQUENCE readmissions_number_seq INCREMENT 2",
    "other object type public.mood": "CREATE TYPE mood AS ENUM ('good')",
    "default privileges postgres 0 r": "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO casebank_worker",
    "schema hidden": "CREATE SCHEMA hidden",
    "extension vector": "DROP EXTENSION vector CASCADE",
}
"""One change of each kind, by the object whose definition it changes."""


async def test_a_change_of_any_kind_is_seen(postgres: EmbeddedPostgres):
    url = await new_database(postgres)
    seen = differences(await read(url), await read(url, "; ".join(CHANGES.values())))
    assert CHANGES.keys() - seen.keys() == set()


@pytest.mark.parametrize("pgvector", ["auto", "off"])
async def test_after_a_downgrade_nothing_is_left_and_an_upgrade_makes_the_same_again(
    postgres: EmbeddedPostgres, pgvector: str
):
    url = await new_database(postgres, pgvector=pgvector)
    whole = await read(url)
    await migrate(url, "base", pgvector=pgvector)
    left = {name for name in await read(url) if not name.startswith(("role ", "schema ", "extension "))}
    assert {name for name in left if "alembic_version" not in name} == set()
    await migrate(url, pgvector=pgvector)
    assert differences(whole, await read(url)) == {}


async def test_a_login_that_is_no_superuser_makes_the_same_schema_and_owns_it(postgres: EmbeddedPostgres):
    name, login = f"t{uuid4().hex}", f"plain_{uuid4().hex}"
    roles = "casebank_service, casebank_worker, casebank_eraser"
    url = await new_database(postgres)  # which makes the roles
    await read(postgres.url("postgres"), f"CREATE ROLE {login} LOGIN; GRANT {roles} TO {login} WITH ADMIN OPTION")
    await read(postgres.url("postgres"), f"CREATE DATABASE {name}")
    await read(postgres.url(name), f"GRANT CREATE ON SCHEMA public TO {login}; CREATE EXTENSION vector")
    await migrate(postgres.url(name, login))
    whole, own = [
        {key: (repr(each).replace(login, "postgres"),) for key, each in (await read(place)).items()}
        for place in (url, postgres.url(name))
    ]
    seen = differences(whole, own)
    assert {each for each in seen if not each.startswith("role ")} == {"schema public"}


async def test_without_pgvector_the_vectors_and_what_compares_them_alone_differ(postgres: EmbeddedPostgres):
    seen = differences(
        await read(await new_database(postgres)), await read(await new_database(postgres, pgvector="off"))
    )
    search = "hybrid_search_context_eng_memories(text,{},integer,double precision,double precision,integer)"
    tables = {"case_embeddings", "context_eng_memories", "memories", "shared_memories"}
    assert names(seen, "column") == {f"{each}.embedding" for each in tables | HNSW}
    assert names(seen, "index") == HNSW
    assert names(seen, "function") == {
        *(search.format(kind) for kind in ("vector", "real[]")),
        "casebank_nearest(text,text,text,real[],boolean,integer)",
    }
    assert {name.split()[0] for name in seen} <= {"extension", "column", "index", "relation", "function", "other"}
    assert names(seen, "relation") - {"context_eng_memories"} == HNSW


async def test_tables_indexes_and_constraints_are_those_of_the_metadata(postgres: EmbeddedPostgres):
    migrated = await read(await new_database(postgres))
    url = await new_database(postgres)
    await migrate(url, "base")
    await create_all(url)
    assert differences(defined(await read(url)), defined(migrated)) == {}


async def create_all(url: str) -> None:
    def create(connection: Connection, _config: Config) -> None:
        metadata.create_all(connection)

    await with_alembic(url, create)


def defined(whole: Catalog) -> Catalog:
    """Those parts of the catalogue that stand in the metadata, too."""
    return {
        name: tuple(each[number] for number in DEFINITIONS[kind])
        for name, each in whole.items()
        if (kind := name.split()[0]) in DEFINITIONS
        and not name.startswith("column context_eng_memories.")  # a view's
        and not any(index in name for index in HNSW)
        and not (kind == "constraint" and each[0] == b"t")  # a trigger's
    }
