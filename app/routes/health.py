"""Whether the process lives and can serve, for anybody; and its numbers, for the operator."""

from contextlib import suppress
from dataclasses import asdict

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import JsonValue

from app.auth.tokens import TokenVerifier
from app.edge.dependencies import Operator, Parts, is_operator
from app.edge.intake.route import BodyRoute
from app.jobs.metrics import State, refresh, state
from app.jobs.records import JobRecord
from app.jobs.schedule import is_well, periods
from app.runtime import Runtime
from retrieval.errors import DatabaseUnavailable
from writer.privacy.master_keys import MasterKeyMismatch, agree

router = APIRouter(tags=["service"], route_class=BodyRoute)

_Said = dict[str, JsonValue]


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """Returns that the process lives."""
    return {"status": "ok"}


@router.get("/readyz", responses={200: {"model": _Said}, 503: {"model": _Said, "description": "why it cannot"}})
async def readyz(request: Request, parts: Parts) -> JSONResponse:
    """Returns whether the service can serve; to the operator, with the queue, its bounds and how the jobs do.

    It cannot without the database, with a master key that is not the database's, or while the issuer of its tokens has
    never answered. A job that is late or failed last takes nothing from those who call: it is named in ``late``.
    """
    verifier: TokenVerifier = request.app.state.verifier
    try:
        seen = await state(parts.database)
        async with parts.database.as_worker() as connection:
            await agree(connection, parts.keyring.masters)
    except (DatabaseUnavailable, MasterKeyMismatch) as error:
        return _unavailable(str(error))
    if not await verifier.keys.known():
        return _unavailable("the issuer of the tokens has never answered at CASEBANK_JWKS_URL: nobody gets in")
    numbers = _numbers(parts, seen) if await is_operator(request) else {}
    return JSONResponse({"status": "ok", **numbers})


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(parts: Parts, _operator: Operator) -> Response:
    """Returns every metric in Prometheus' text format, to the operator.

    Without the database, those that need none are of now.
    """
    with suppress(DatabaseUnavailable):
        await refresh(parts.database)
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)


def _unavailable(why: str) -> JSONResponse:
    return JSONResponse({"status": "unavailable", "detail": why}, 503)


def _numbers(parts: Runtime, seen: State) -> dict[str, object]:
    wanted = periods(parts.settings)
    return {
        "queue": seen.cases,
        "bounds": asdict(parts.admission.backlog.bounds),
        "jobs": {job.name: _summary(job) for job in seen.jobs},
        "late": [job.name for job in seen.jobs if job.name in wanted and not is_well(job, wanted[job.name])],
    }


def _summary(job: JobRecord) -> dict[str, float | str | None]:
    seconds = None if job.since_success is None else round(job.since_success.total_seconds(), 1)
    return {"last_success_s_ago": seconds, "failures_in_a_row": job.failures, "last_error": job.last_error}
