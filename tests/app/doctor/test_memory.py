"""What makes memory work: each illness is found by its name."""

import os
import re
from pathlib import Path

from pydantic import SecretStr

from app.jobs.records import JobRecords
from app.jobs.schedule import WORKER
from app.postgres.pools import service_database
from tests.app.doctor.conftest import as_owner, look, retain_one
from tests.fakes.chat_server import ChatServer
from tests.fakes.openai_server import Fault


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


async def test_dead_lessons_of_a_case_that_is_found_are_found_and_a_requeue_advised(url: str, tmp_path: Path):
    await retain_one(url)
    await as_owner(url, "UPDATE cases SET status = 'ready'")
    await as_owner(
        url,
        "INSERT INTO reflections (user_sub, id, agent_key, status, is_new)"
        " SELECT user_sub, id, agent_key, 'dead', true FROM cases",
    )
    found = (await look(url, tmp_path))["queue"]
    assert found.ok is False
    assert "lessons: 0 pending, 1 dead" in found.detail
    assert "requeue" in found.advice


async def test_a_queue_that_nobody_works_on_is_found(url: str, tmp_path: Path):
    await retain_one(url)
    await as_owner(url, "UPDATE cases SET available_at = now() - interval '1 hour'")
    found = (await look(url, tmp_path))["queue"]
    assert found.ok is False
    assert "casebank worker" in found.advice


async def test_a_dead_session_is_found_and_a_requeue_advised(url: str, tmp_path: Path):
    await retain_one(url)
    await as_owner(url, "UPDATE cases SET status = 'ready'")
    await as_owner(
        url,
        "INSERT INTO sessions (user_sub, id, agent_key, name, status, key_id)"
        " SELECT user_sub, id, agent_key, 'chat', 'dead', key_id FROM cases",
    )
    found = (await look(url, tmp_path))["queue"]
    assert (found.ok, "sessions: 0 pending, 1 dead" in found.detail, "requeue" in found.advice) == (False, True, True)


async def test_lessons_on_which_nobody_works_are_found(url: str, tmp_path: Path):
    await retain_one(url)
    await as_owner(url, "UPDATE cases SET status = 'ready'")
    await as_owner(
        url,
        "INSERT INTO reflections (user_sub, id, agent_key, is_new, created_at, available_at)"
        " SELECT user_sub, id, agent_key, true, now() - interval '1 hour', now() - interval '1 hour' FROM cases",
    )
    found = await look(url, tmp_path)
    assert (found["queue"].ok, found["worker"].ok) == (False, False)
    assert "casebank worker" in found["queue"].advice


async def test_a_bank_without_a_service_so_far_has_no_jobs_to_judge(url: str, tmp_path: Path):
    assert (await look(url, tmp_path))["jobs"].ok is None


async def test_a_job_that_succeeds_is_well_and_one_that_fails_is_named_with_its_error(url: str, tmp_path: Path):
    await as_owner(url, "INSERT INTO jobs (name, last_succeeded) VALUES ('upkeep', now()), ('training', now())")
    found = (await look(url, tmp_path))["jobs"]
    assert found.ok
    assert re.search(r"upkeep succeeded \d+ s ago", found.detail)
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
    found = (await look(url, tmp_path))["embedding models"]
    assert (found.ok, "1 in another" in found.detail) == (False, True)
    assert "casebank reembed" in found.advice


async def test_an_embedder_that_does_not_answer_is_found(url: str, tmp_path: Path):
    nobody = {"embedder": "openai", "openai_base_url": "http://127.0.0.1:1/v1", "openai_api_key": SecretStr("k")}
    found = (await look(url, tmp_path, **nobody, timeouts_s={"embedder_request": 0.2}))["embedder"]
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


async def test_where_no_worker_works_the_doctor_says_so(url: str, tmp_path: Path):
    assert (await look(url, tmp_path))["worker"].ok is None
    await retain_one(url)
    await as_owner(url, "UPDATE cases SET available_at = now() - interval '2 minutes'")
    finding = (await look(url, tmp_path))["worker"]
    assert (finding.ok, finding.detail) == (False, "none has run here yet")


async def test_a_worker_is_well_while_no_case_waits_or_it_gives_signs_of_life(url: str, tmp_path: Path):
    async with service_database(url) as database:
        await JobRecords(database).succeeded(WORKER)
    assert (await look(url, tmp_path))["worker"].ok
    await as_owner(url, "UPDATE jobs SET last_succeeded = now() - interval '2 minutes'")
    assert (await look(url, tmp_path))["worker"].ok
    await retain_one(url)
    await as_owner(url, "UPDATE cases SET available_at = now() - interval '2 minutes'")
    finding = (await look(url, tmp_path))["worker"]
    assert finding.ok is False
    assert re.search(r"worker succeeded 12\d s ago", finding.detail)
