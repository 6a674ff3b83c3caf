"""The doctor: well on a well bank, and a report whatever is broken."""

from pathlib import Path

from app.doctor.examine import BEFORE, CHECKS
from tests.app.doctor.conftest import look, retain_one


async def test_a_well_bank_has_nothing_to_complain_of(url: str, tmp_path: Path):
    await retain_one(url)
    found = await look(url, tmp_path)
    assert [finding for finding in found.values() if finding.ok is False] == []
    assert len(found) == len(BEFORE) + 1 + len(CHECKS)  # and whether there is a connection
    assert "PostgreSQL 18" in found["postgres"].detail
    assert found["pgvector"].ok
    assert "256 dimensions" in found["embedder"].detail
    assert "opens 1 of 1" in found["keys"].detail
    assert "1 pending, 0 dead" in found["queue"].detail


async def test_an_empty_bank_is_well(url: str, tmp_path: Path):
    assert all(finding.ok is not False for finding in (await look(url, tmp_path)).values())


async def test_no_database_is_one_finding_and_the_rest_of_the_report_comes_all_the_same(tmp_path: Path):
    found = await look("postgresql://127.0.0.1:1/nowhere", tmp_path)
    assert found["connection"].ok is False
    assert found["connection"].detail.startswith("nowhere at 127.0.0.1:1 (DATABASE_URL): ConnectionRefusedError: ")
    assert found["connection"].advice == "is the database running, and DATABASE_URL right?"
    assert {"software", "disk", "secrets"} <= set(found)


async def test_no_report_names_the_databases_password(tmp_path: Path):
    found = await look("postgresql://me:hunter2@127.0.0.1:1/nowhere", tmp_path)
    assert "hunter2" not in str(found)
