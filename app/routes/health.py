"""Whether the process lives, whether it can serve, and its numbers; open to anybody who reaches the port."""

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST, Gauge, generate_latest

from app.deps import Parts
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
    """Returns whether the database answers, with the state of the queue."""
    try:
        queue = await _queue(parts)
    except DatabaseUnavailable as error:
        return JSONResponse({"status": "unavailable", "detail": str(error)}, 503)
    return JSONResponse({"status": "ok", "queue": queue})


@router.get("/metrics")
async def metrics(parts: Parts) -> Response:
    """Returns every metric in Prometheus' text format."""
    try:
        queue = await _queue(parts)
    except DatabaseUnavailable:
        return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)
    for status in ("pending", "dead"):
        QUEUE.labels(status).set(queue.get(status, 0))
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)


async def _queue(parts: Parts) -> dict[str, int]:
    async with parts.database.as_worker() as connection:
        return {row.status: row.cases for row in await connection.execute(depth())}
