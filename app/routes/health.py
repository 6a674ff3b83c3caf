"""The service's name, health and readiness, open to everybody, and metrics for the operator."""

from contextlib import suppress
from dataclasses import asdict

from fastapi import Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel, JsonValue

from app import __version__
from app.auth.tokens import TokenVerifier
from app.edge.dependencies import Operator, Parts, is_operator
from app.edge.routers import api_router
from app.jobs.metrics import State, exposition, refresh, state
from app.jobs.schedule import SILENCE, WORKER, is_well, periods
from retrieval.database.database import Database
from retrieval.errors import DatabaseUnavailable, SchemaOutdated
from writer.privacy.master_keys import MasterKeyMismatch, agree


class About(BaseModel):
    """The service, and where its documentation is."""

    name: str = "casebank"
    version: str = __version__
    what: str = "memory for agents that learns which memories help: retrieve before the agent acts, retain after"
    documentation: str = "/docs"
    description: str = "/openapi.json"
    ready: str = "/readyz"


router = api_router("service", responses={})

_Said = dict[str, JsonValue]


@router.get("/")
async def about() -> About:
    """Returns the name and version of the service, with links."""
    return About()


@router.head("/healthz", include_in_schema=False)
@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """Returns 200 while the process is alive."""
    return {"status": "ok"}


@router.head("/readyz", include_in_schema=False)
@router.get(
    "/readyz",
    responses={200: {"model": _Said}, 503: {"model": _Said, "description": "reason why the service is not ready"}},
)
async def readyz(request: Request, parts: Parts) -> JSONResponse:
    """Returns 200 if the service is ready; the operator also gets the queue, its bounds and the state of the jobs.

    It is not ready without a database, with a master key other than the database's, or before the issuer of its tokens
    has answered once. While the process rests, no database is asked. A late or failed job does not make it unready;
    ``late`` names it, and a worker that is silent although a case waits. A node of a cluster that does not answer does
    not make it unready either: the users of the other nodes are served. The operator then gets ``detail`` alone.
    """
    verifier: TokenVerifier = request.app.state.verifier
    if parts.rest.at_rest:
        return JSONResponse({"status": "ok", "at_rest": True})
    try:
        async with parts.database.as_worker() as connection:
            await agree(connection, parts.keyring.masters)
        seen = await _state(parts.database)
    except (DatabaseUnavailable, MasterKeyMismatch) as error:
        return _unavailable(str(error))
    if not await verifier.keys.known():
        return _unavailable("the token issuer at CASEBANK_JWKS_URL has not answered yet, so no token can be checked")
    if not await is_operator(request):
        return JSONResponse({"status": "ok"})
    if seen is None:
        return JSONResponse({"status": "ok", "detail": "a node of the cluster does not answer"})
    wanted = periods(parts.settings)
    jobs = {
        job.name: {
            "last_success_s_ago": None if job.since_success is None else round(job.since_success.total_seconds(), 1),
            "failures_in_a_row": job.failures,
            "last_error": job.last_error,
        }
        for job in seen.jobs
    }
    late = [job.name for job in seen.jobs if job.name in wanted and not is_well(job, wanted[job.name])]
    # a worker without work gives no sign of life
    sign = next((job for job in seen.jobs if job.name == WORKER), None)
    well = seen.oldest <= SILENCE or (sign is not None and sign.age <= SILENCE)
    if not well or (sign is not None and sign.last_error is not None):
        late.append(WORKER)
    bounds = asdict(parts.admission.backlog.bounds)
    return JSONResponse({"status": "ok", "queue": seen.cases, "bounds": bounds, "jobs": jobs, "late": late})


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(parts: Parts, _operator: Operator) -> Response:
    """Returns all metrics in the Prometheus text format, for the operator.

    Without a database, and while the process rests, metrics that need one keep their last values.
    """
    with suppress(DatabaseUnavailable):
        if not parts.rest.at_rest:
            await refresh(parts.database)
    return Response(exposition(), media_type=CONTENT_TYPE_LATEST)


async def _state(database: Database) -> State | None:
    """Returns the state of the queue and the jobs, or None if the coordinator of a cluster answers but a node does not.

    Raises:
        DatabaseUnavailable: the database does not answer, or was not migrated.
    """
    try:
        return await state(database)
    except SchemaOutdated:
        raise
    except DatabaseUnavailable:
        if not database.citus:
            raise
        return None


def _unavailable(why: str) -> JSONResponse:
    return JSONResponse({"status": "unavailable", "detail": why}, 503)
