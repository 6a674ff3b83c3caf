"""Errors as RFC 9457 problem documents; a test fails when an error of casebank is missing from the table."""

from dataclasses import dataclass
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from app.auth import KeysUnavailable, NotAllowed, NotAuthenticated, UserNotNamed
from app.postgres import EmbeddedPostgresFailed
from retrieval.errors import CasebankError, DatabaseUnavailable, EmbedderError, ModelError, NotFound, UserErased
from retrieval.telemetry import log
from writer.errors import IdempotencyConflict, LeaseLost
from writer.privacy.seal import PayloadTooLarge, SealBroken

MEDIA_TYPE = "application/problem+json"


class Problem(BaseModel):
    """What every answer that is not a success looks like."""

    type: str = Field(examples=["urn:casebank:problem:not-found"])
    title: str = Field(examples=["Not Found"])
    status: int = Field(examples=[404])
    detail: str = Field(examples=["no such case"])
    errors: list[dict[str, str]] = Field(default=[], description="of an invalid request: each field and its fault")


DOCUMENTED: dict[int | str, dict[str, object]] = {
    "default": {
        "description": "A problem document (RFC 9457)",
        "content": {MEDIA_TYPE: {"schema": Problem.model_json_schema()}},
    },
}
"""For the OpenAPI description of a route."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What a client is told of one type of error."""

    slug: str
    status: HTTPStatus
    headers: tuple[tuple[str, str], ...] = ()


RETRY = (("Retry-After", "1"),)

KINDS: dict[type[CasebankError], Kind] = {
    NotAuthenticated: Kind("not-authenticated", HTTPStatus.UNAUTHORIZED, (("WWW-Authenticate", "Bearer"),)),
    NotAllowed: Kind("not-allowed", HTTPStatus.FORBIDDEN),
    UserNotNamed: Kind("user-not-named", HTTPStatus.BAD_REQUEST),
    NotFound: Kind("not-found", HTTPStatus.NOT_FOUND),
    UserErased: Kind("user-erased", HTTPStatus.GONE),
    IdempotencyConflict: Kind("idempotency-conflict", HTTPStatus.CONFLICT),
    PayloadTooLarge: Kind("payload-too-large", HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    DatabaseUnavailable: Kind("database-unavailable", HTTPStatus.SERVICE_UNAVAILABLE, RETRY),
    EmbeddedPostgresFailed: Kind("database-unavailable", HTTPStatus.SERVICE_UNAVAILABLE, RETRY),
    KeysUnavailable: Kind("signing-keys-unavailable", HTTPStatus.SERVICE_UNAVAILABLE, RETRY),
    EmbedderError: Kind("embedder-unavailable", HTTPStatus.SERVICE_UNAVAILABLE, RETRY),
    ModelError: Kind("model-unavailable", HTTPStatus.SERVICE_UNAVAILABLE, RETRY),
    SealBroken: Kind("seal-broken", HTTPStatus.INTERNAL_SERVER_ERROR),
    LeaseLost: Kind("lease-lost", HTTPStatus.CONFLICT),
}


def kind_of(error: CasebankError) -> Kind:
    """Returns the table's entry for the error's type or the nearest type above it."""
    return next(KINDS[cls] for cls in type(error).__mro__ if cls in KINDS)


def problem(kind: Kind, detail: str, **more: object) -> JSONResponse:
    """Returns the problem document: type, title, status, detail, and what else is known (RFC 9457, section 3)."""
    body = {
        "type": f"urn:casebank:problem:{kind.slug}",
        "title": kind.status.phrase,
        "status": int(kind.status),
        "detail": detail,
        **more,
    }
    return JSONResponse(body, int(kind.status), headers=dict(kind.headers), media_type=MEDIA_TYPE)


def install(app: FastAPI) -> None:
    """Makes the app answer every error with a problem document."""
    app.add_exception_handler(CasebankError, _casebank)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _crash)


async def _casebank(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, CasebankError)  # noqa: S101 - for the type checker
    return problem(kind_of(error), str(error))


async def _invalid(_request: Request, error: Exception) -> JSONResponse:
    """Names each wrong field and what is wrong; never repeats the value, which may be secret or not even text."""
    assert isinstance(error, RequestValidationError)  # noqa: S101 - for the type checker
    errors = [
        {"field": ".".join(_printable(part) for part in item["loc"]), "message": _printable(item["msg"])}
        for item in error.errors()
    ]
    kind = Kind("invalid-request", HTTPStatus.UNPROCESSABLE_ENTITY)
    return problem(kind, "the request does not have the documented form", errors=errors[:20])


def _printable(text: object) -> str:
    return str(text).encode(errors="replace").decode().replace("\x00", "?")[:200]


async def _http(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)  # noqa: S101 - for the type checker
    status = HTTPStatus(error.status_code)
    headers = tuple((error.headers or {}).items())
    return problem(Kind(status.phrase.lower().replace(" ", "-"), status, headers), str(error.detail))


async def _crash(_request: Request, error: Exception) -> JSONResponse:
    """Says that something broke, and nothing of what: the log has the type."""
    log.error("request.crash", error=type(error).__name__, exc_info=error)
    return problem(Kind("internal-error", HTTPStatus.INTERNAL_SERVER_ERROR), "something broke on this side")
