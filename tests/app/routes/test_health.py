"""Alive, ready, and its numbers: open to anybody, and they tell how the background jobs do."""

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from app.job_records import JobRecords
from app.schedule import TRAINING, UPKEEP
from tests.app.conftest import Service


@pytest.fixture
async def anybody(service: Service) -> httpx.AsyncClient:
    return await service.http(None)


async def test_it_says_that_it_lives(anybody: httpx.AsyncClient):
    assert (await anybody.get("/healthz")).json() == {"status": "ok"}


async def test_a_ready_service_tells_how_long_ago_each_job_last_succeeded(service: Service, anybody: httpx.AsyncClient):
    records = JobRecords(service.runtime.database)
    for job in (UPKEEP, TRAINING):
        await records.of(job)
    await records.succeeded(UPKEEP)
    await records.failed(TRAINING, "TrainingFailed")
    answer = (await anybody.get("/readyz")).json()
    assert answer["status"] == "ok"
    assert 0 <= answer["jobs"][UPKEEP].pop("last_success_s_ago") < 60
    assert answer["jobs"][UPKEEP] == {"failures_in_a_row": 0, "last_error": None}
    assert answer["jobs"][TRAINING]["last_success_s_ago"] is None
    assert answer["jobs"][TRAINING]["last_error"] == "TrainingFailed"


async def test_the_metrics_tell_of_every_job_its_failures_and_its_last_success(
    service: Service, anybody: httpx.AsyncClient
):
    await JobRecords(service.runtime.database).of(UPKEEP)
    await JobRecords(service.runtime.database).succeeded(UPKEEP)
    samples = {
        (sample.name, sample.labels.get("job"))
        for family in text_string_to_metric_families((await anybody.get("/metrics")).text)
        for sample in family.samples
    }
    assert {("casebank_job_failures_total", job) for job in (UPKEEP, TRAINING)} <= samples
    assert ("casebank_job_last_success_timestamp_seconds", UPKEEP) in samples
