"""The database: who sees what, and whether its versions and its schema will do."""

import re
from pathlib import Path
from uuid import uuid4

import pytest

from app.postgres import EmbeddedPostgres
from app.postgres.migrate import migrate
from retrieval.tables.metadata import metadata
from tests.app.doctor.conftest import as_owner, look, retain_one
from tests.conftest import new_database


async def test_a_database_without_tables_is_told_to_migrate(postgres: EmbeddedPostgres, tmp_path: Path):
    found = await look(postgres.url("template1"), tmp_path)
    assert (found["schema"].ok, found["schema"].advice) == (False, "casebank migrate")
    assert found["queue"].ok is None


async def test_a_schema_to_be_migrated_is_the_only_advice(url: str, tmp_path: Path):
    """What migrate mends needs no advice of its own."""
    await migrate(url, "base")
    found = await look(url, tmp_path)
    assert {name: each.advice for name, each in found.items() if each.advice and each.ok is False} == {
        "schema": "casebank migrate"
    }
    assert "casebank migrate" in found["row security"].detail
    assert found["clock"].ok


async def test_a_revision_that_this_version_does_not_have_is_told_how_to_move_its_data(url: str, tmp_path: Path):
    await as_owner(url, "UPDATE alembic_version SET version_num = '0045'")
    finding = (await look(url, tmp_path))["schema"]
    assert (finding.ok, finding.detail) == (False, "revision 0045, head 0016_repeated_at")
    assert "`casebank export` each user with the version that wrote it" in finding.advice


async def test_a_cluster_that_is_none_is_found(url: str, tmp_path: Path):
    finding = (await look(f"{url}&citus=true", tmp_path))["cluster"]
    assert (finding.ok, finding.detail) == (False, "citus=true, and no table is distributed")
    assert (await look(url, tmp_path))["cluster"].ok is None


async def test_a_table_without_forced_row_security_is_named(url: str, tmp_path: Path):
    await as_owner(url, "ALTER TABLE audit NO FORCE ROW LEVEL SECURITY")
    found = (await look(url, tmp_path))["row security"]
    assert (found.ok, found.detail) == (False, "not forced on audit")


async def test_rows_that_a_stranger_sees_are_found(url: str, tmp_path: Path):
    await retain_one(url)
    await as_owner(url, "CREATE POLICY leak ON cases TO casebank_service USING (true)")
    found = (await look(url, tmp_path))["isolation"]
    assert (found.ok, found.detail) == (False, "a stranger sees rows of cases")


async def test_a_service_role_that_owns_a_table_is_not_plain(url: str, tmp_path: Path):
    await as_owner(
        url, "GRANT CREATE ON SCHEMA public TO casebank_service; ALTER TABLE audit OWNER TO casebank_service"
    )
    assert (await look(url, tmp_path))["role"].ok is False


async def test_a_bank_without_pgvector_is_no_illness(postgres: EmbeddedPostgres, tmp_path: Path):
    found = (await look(await new_database(postgres, pgvector="off"), tmp_path))["pgvector"]
    assert found.ok is None


async def test_a_missing_index_of_the_queue_is_named(url: str, tmp_path: Path):
    assert (await look(url, tmp_path))["indexes"].ok
    await as_owner(url, "DROP INDEX cases_queue_idx")
    finding = (await look(url, tmp_path))["indexes"]
    assert (finding.ok, finding.detail) == (False, "missing: cases_queue_idx")


async def test_pgvector_that_was_dropped_under_a_bank_is_found_by_a_search(url: str, tmp_path: Path):
    assert (await look(url, tmp_path))["search"].ok
    await as_owner(url, "DROP EXTENSION vector CASCADE")
    assert (await look(url, tmp_path))["search"].ok is False


async def test_a_search_is_well_on_a_bank_without_pgvector(postgres: EmbeddedPostgres, tmp_path: Path):
    assert (await look(await new_database(postgres, pgvector="off"), tmp_path))["search"].ok


async def test_only_large_tables_have_a_size_of_their_own_and_the_sum_counts_all(url: str, tmp_path: Path):
    total = rf"\d+\.\d MB in {len(metadata.tables)} tables"
    assert re.fullmatch(total, (await look(url, tmp_path))["sizes"].detail)
    many = "SELECT md5(i::text), 'retired' FROM generate_series(1, 20000) AS i"
    await as_owner(url, f"INSERT INTO master_keys (fingerprint, status) {many}")
    assert re.fullmatch(rf"{total}: master_keys \d\.\d MB", (await look(url, tmp_path))["sizes"].detail)


async def test_the_services_login_is_enough_for_the_doctor(postgres: EmbeddedPostgres, tmp_path: Path):
    url = await new_database(postgres)
    await as_owner(url, "DROP ROLE IF EXISTS doctors_login; CREATE ROLE doctors_login LOGIN")
    await as_owner(url, "GRANT casebank_service, casebank_worker, casebank_eraser TO doctors_login")
    found = await look(url.replace("postgres@", "doctors_login@"), tmp_path)
    assert [finding for finding in found.values() if finding.ok is False] == []
    assert found["schema"].ok
    assert found["search"].ok
    assert found["login"].ok


@pytest.mark.parametrize(
    ("right", "words"), [("BYPASSRLS", "has BYPASSRLS"), ("SUPERUSER", "is a superuser"), ("", "owns tables")]
)
async def test_a_login_that_could_read_past_row_security_is_warned_of(
    postgres: EmbeddedPostgres, tmp_path: Path, right: str, words: str
):
    """As Supabase's `postgres` and `service_role`: the service drops those rights, and its login could take them."""
    url = await new_database(postgres)
    name = f"login_{uuid4().hex}"
    await as_owner(url, f"CREATE ROLE {name} LOGIN {right}; GRANT casebank_service, casebank_worker TO {name}")
    if not right:
        await as_owner(url, f"CREATE TABLE mine (); ALTER TABLE mine OWNER TO {name}")
    finding = (await look(url.replace("postgres@", f"{name}@"), tmp_path))["login"]
    assert finding.ok is None
    assert f"{name} {words}: " in finding.detail
    assert "docs/deploy.md" in finding.advice
