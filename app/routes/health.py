"""Whether the process lives, whether it can serve, and its numbers; open to anybody who reaches the port."""

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST, Gauge, generate_latest

from app.deps import Parts
from app.job_records import JobRecord, all_records
from app.jobs import set_last_success
from retrieval.errors import DatabaseUnavailable
from writer.worker.queue import depth

router = APIRouter()

QUEUE = Gauge("casebank_queue_cases", "Cases that are not in the bank yet", ["status"])


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """Returns that the process lives."""
    return {"status": "ok"}


@router.get("/readyz")
async def readyz(parts: Parts) -> JSONResponse:
    """Returns whether the database answers, with the state of the queue and how the background jobs do."""
    try:
        queue, jobs = await _state(parts)
    except DatabaseUnavailable as error:
        return JSONResponse({"status": "unavailable", "detail": str(error)}, 503)
    return JSONResponse({"status": "ok", "queue": queue, "jobs": {job.name: _summary(job) for job in jobs}})


@router.get("/metrics")
async def metrics(parts: Parts) -> Response:
    """Returns every metric in Prometheus' text format."""
    try:
        queue, jobs = await _state(parts)
    except DatabaseUnavailable:
        return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)
    for job in jobs:
        set_last_success(job)
    for status in ("pending", "dead"):
        QUEUE.labels(status).set(queue.get(status, 0))
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)


async def _state(parts: Parts) -> tuple[dict[str, int], list[JobRecord]]:
    """Returns the cases in the queue by status, and the jobs' records."""
    async with parts.database.as_worker() as connection:
        queue = {row.status: row.cases for row in await connection.execute(depth())}
        return queue, await all_records(connection)


def _summary(job: JobRecord) -> dict[str, float | str | None]:
    seconds = None if job.since_success is None else round(job.since_success.total_seconds(), 1)
    return {"last_success_s_ago": seconds, "failures_in_a_row": job.failures, "last_error": job.last_error}
