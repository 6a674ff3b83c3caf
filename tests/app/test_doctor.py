"""The doctor: well on a well bank, and each illness found by its name."""

import os
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from pydantic import SecretStr

from app.db import service_database
from app.doctor import CHECKS, Finding, examine
from app.postgres import EmbeddedPostgres
from app.settings import Settings
from tests.conftest import new_database
from tests.fakes.chat_server import ChatServer
from tests.fakes.openai_server import Fault
from writer.author import Author
from writer.privacy.keys import Keyring
from writer.retain.retain import retain
from writer.run import FinishedRun

MASTER = os.urandom(32)


@pytest.fixture
async def url(postgres: EmbeddedPostgres) -> str:
    return await new_database(postgres)


def settings(url: str, home: Path, **more: Any) -> Settings:
    given = {"home": home, "database_url": url, "master_key": SecretStr(MASTER.hex()), **more}
    return Settings(**given)


async def look(url: str, home: Path, **more: Any) -> dict[str, Finding]:
    return {finding.name: finding for finding in await examine(settings(url, home, **more))}


async def as_owner(url: str, statement: str) -> None:
    owner = await asyncpg.connect(url.replace("+asyncpg", ""))
    await owner.execute(statement)
    await owner.close()


async def retain_one(url: str) -> str:
    user = f"user-{uuid4()}"
    run = FinishedRun(agent="agent", task="a task", outcome="success")
    async with service_database(url) as database:
        await retain(database, Keyring(MASTER), run, Author(user, "test", datetime.now(UTC)))
    return user


async def test_a_well_bank_has_nothing_to_complain_of(url: str, tmp_path: Path):
    await retain_one(url)
    found = await look(url, tmp_path)
    assert [finding for finding in found.values() if finding.ok is False] == []
    assert len(found) == len(CHECKS) + 5
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
    assert {"software", "disk", "secrets"} <= set(found)


async def test_no_report_names_the_databases_password(tmp_path: Path):
    found = await look("postgresql://me:hunter2@127.0.0.1:1/nowhere", tmp_path)
    assert "hunter2" not in str(found)


async def test_a_database_without_tables_is_told_to_migrate(postgres: EmbeddedPostgres, tmp_path: Path):
    found = await look(postgres.url("template1"), tmp_path)
    assert (found["schema"].ok, found["schema"].advice) == (False, "casebank migrate")
    assert found["queue"].ok is False


async def test_a_table_without_forced_row_security_is_named(url: str, tmp_path: Path):
    await as_owner(url, "ALTER TABLE audit NO FORCE ROW LEVEL SECURITY")
    found = (await look(url, tmp_path))["row security"]
    assert (found.ok, found.detail) == (False, "not forced on audit")


async def test_rows_that_a_stranger_sees_are_found(url: str, tmp_path: Path):
    await retain_one(url)
    await as_owner(url, "CREATE POLICY leak ON cases TO casebank_service USING (true)")
    found = (await look(url, tmp_path))["strangers"]
    assert (found.ok, found.detail) == (False, "a stranger sees rows of cases")


async def test_a_service_role_that_owns_a_table_is_not_plain(url: str, tmp_path: Path):
    await as_owner(
        url, "GRANT CREATE ON SCHEMA public TO casebank_service; ALTER TABLE audit OWNER TO casebank_service"
    )
    assert (await look(url, tmp_path))["role"].ok is False


async def test_the_wrong_master_key_is_found(url: str, tmp_path: Path):
    await retain_one(url)
    found = (await look(url, tmp_path, master_key=SecretStr(os.urandom(32).hex())))["keys"]
    assert found.ok is False
    assert "CASEBANK_MASTER_KEY" in found.advice


async def test_a_dead_case_is_found_and_a_requeue_advised(url: str, tmp_path: Path):
    await retain_one(url)
    await as_owner(url, "UPDATE cases SET status = 'dead'")
    found = (await look(url, tmp_path))["queue"]
    assert found.ok is False
    assert "0 pending, 1 dead" in found.detail
    assert "requeue" in found.advice


async def test_a_queue_that_nobody_works_on_is_found(url: str, tmp_path: Path):
    await retain_one(url)
    await as_owner(url, "UPDATE cases SET created_at = now() - interval '1 hour'")
    found = (await look(url, tmp_path))["queue"]
    assert found.ok is False
    assert "casebank worker" in found.advice


async def test_a_bank_without_a_service_so_far_has_no_jobs_to_judge(url: str, tmp_path: Path):
    assert (await look(url, tmp_path))["jobs"].ok is None


async def test_a_job_that_succeeds_is_well_and_one_that_fails_is_named_with_its_error(url: str, tmp_path: Path):
    await as_owner(url, "INSERT INTO jobs (name, last_succeeded) VALUES ('upkeep', now()), ('training', now())")
    found = (await look(url, tmp_path))["jobs"]
    assert found.ok
    assert "upkeep succeeded 0 s ago" in found.detail
    await as_owner(url, "UPDATE jobs SET failures = 3, last_error = 'DBAPIError' WHERE name = 'upkeep'")
    found = (await look(url, tmp_path))["jobs"]
    assert found.ok is False
    assert "failed 3 times since: DBAPIError" in found.detail


async def test_a_job_that_has_not_run_for_long_is_found_unless_it_is_switched_off(url: str, tmp_path: Path):
    await as_owner(url, "INSERT INTO jobs (name, last_succeeded) VALUES ('training', now() - interval '4 days')")
    found = (await look(url, tmp_path))["jobs"]
    assert (found.ok, "is a service running?" in found.advice) == (False, True)
    assert (await look(url, tmp_path, train_every_s=0))["jobs"].ok is None


async def test_a_profile_in_another_vector_space_is_told_to_reembed(url: str, tmp_path: Path):
    await retain_one(url)
    await as_owner(url, "UPDATE profiles SET embedding_model = 'another'")
    found = (await look(url, tmp_path))["spaces"]
    assert (found.ok, "1 in another" in found.detail) == (False, True)
    assert "casebank reembed" in found.advice


async def test_an_embedder_that_does_not_answer_is_found(url: str, tmp_path: Path):
    nobody = {"embedder": "openai", "openai_base_url": "http://127.0.0.1:1/v1", "openai_api_key": SecretStr("k")}
    found = (await look(url, tmp_path, **nobody, embedder_timeout_s=0.2))["embedder"]
    assert (found.ok, found.advice != "") == (False, True)


async def test_without_a_language_model_there_is_nothing_to_judge(url: str, tmp_path: Path):
    assert (await look(url, tmp_path))["language model"].ok is None


async def test_a_language_model_that_answers_is_well_and_one_that_does_not_is_found(url: str, tmp_path: Path):
    with ChatServer() as server:
        server.says = lambda _: {"well": True}
        configured = {"llm": "openai", "llm_base_url": server.base_url, "llm_model": "made-up"}
        found = (await look(url, tmp_path, **configured))["language model"]
        assert (found.ok, "made-up" in found.detail) == (True, True)
        server.fault = Fault.STATUS_401
        found = (await look(url, tmp_path, **configured))["language model"]
    assert (found.ok, "check the API key" in found.detail, "CASEBANK_LLM" in found.advice) == (False, True, True)


async def test_secrets_that_others_can_read_are_found(url: str, tmp_path: Path):
    made = settings(url, tmp_path)
    assert made.home_secrets
    path = tmp_path / "secrets.json"
    assert (await look(url, tmp_path))["secrets"].ok
    path.chmod(stat.S_IRUSR | stat.S_IROTH)
    assert (await look(url, tmp_path))["secrets"].ok is False


async def test_a_bank_without_pgvector_is_no_illness(postgres: EmbeddedPostgres, tmp_path: Path):
    found = (await look(await new_database(postgres, pgvector="off"), tmp_path))["pgvector"]
    assert found.ok is None
