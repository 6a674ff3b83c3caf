"""Errors as RFC 9457 problem documents; a test fails when an error that a request can meet is not in the table."""

import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from app.admission.errors import BacklogFull, NotNow, QueueFull, RateExceeded, TooManyAtOnce
from app.admission.quotas import fields
from app.auth.errors import KeysUnavailable, NotAllowed, NotAuthenticated, UserNotNamed
from app.auth.tokens import LEEWAY_S
from app.edge.errors import McpNotInstalled
from app.edge.intake.errors import BodyIncomplete, BodyNotJson, BodyTooComplex, BodyTooCostly, BodyTooLarge, Busy
from app.edge.intake.faults import faults
from app.edge.requests import with_problem
from retrieval.errors import (
    CasebankError,
    DatabaseUnavailable,
    EmbedderError,
    ModelError,
    NotFound,
    SealBroken,
    UserErased,
)
from retrieval.telemetry import log
from writer.errors import (
    ErasureNotConfirmed,
    IdempotencyConflict,
    KnowledgeExists,
    MemoryOff,
    NotJoined,
    PathTooLong,
    RunEnded,
    SecretInName,
    SourceNotAllowed,
    TurnsOutOfOrder,
    UnknownReference,
)
from writer.privacy.master_keys import MasterKeyMismatch
from writer.privacy.seal import PayloadTooLarge

MEDIA_TYPE = "application/problem+json"


class Problem(BaseModel):
    """The body of every answer that is not a success."""

    type: str = Field(examples=["urn:casebank:problem:not-found"])
    title: str = Field(examples=["Not Found"])
    status: int = Field(examples=[404])
    detail: str = Field(examples=["no such case"])
    retry_at: str = Field(default="", description="time from which a try may succeed, after a refusal for now")
    errors: list[dict[str, str]] = Field(default=[], description="fields and faults of an invalid request")


_TEXT = {"type": "string"}
_PROBLEM = {"schema": {"$ref": "#/components/schemas/Problem"}}

DOCUMENTED: dict[int | str, dict[str, Any]] = {
    "default": {"description": "A problem document (RFC 9457)", "content": {MEDIA_TYPE: _PROBLEM}},
    429: {
        "description": "A limit of the user, agent or session is used up for now; a problem document (RFC 9457)",
        "content": {MEDIA_TYPE: _PROBLEM},
        "headers": {
            "Retry-After": {"description": "seconds", "schema": {"type": "integer"}},
            "RateLimit": {"description": "rest of each limit, and seconds until there is more", "schema": _TEXT},
            "RateLimit-Policy": {
                "description": "each limit: requests at once, and window in seconds",
                "schema": _TEXT,
            },
        },
    },
}
"""Responses in the OpenAPI description of every route of a user."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Slug, status and headers of the answer to one type of error."""

    slug: str
    status: HTTPStatus
    headers: tuple[tuple[str, str], ...] = ()


RETRY = (("Retry-After", "1"),)
INVALID = Kind("invalid-request", HTTPStatus.UNPROCESSABLE_ENTITY)
"""Kind of a request that does not have the documented form."""
_NO_ROUTE = {
    HTTPStatus.NOT_FOUND: "there is no such path, or it has no slash at its end; /docs has every operation",
    HTTPStatus.METHOD_NOT_ALLOWED: "the path has no such method; the header Allow names its methods",
}
"""Details of a request that no route takes, by status; a detail repeats nothing that was sent."""

KINDS: dict[type[CasebankError], Kind] = {
    NotAuthenticated: Kind("not-authenticated", HTTPStatus.UNAUTHORIZED, (("WWW-Authenticate", "Bearer"),)),
    NotAllowed: Kind("not-allowed", HTTPStatus.FORBIDDEN),
    SourceNotAllowed: Kind("reward-source-not-allowed", HTTPStatus.FORBIDDEN),
    UnknownReference: Kind("unknown-reference", HTTPStatus.UNPROCESSABLE_ENTITY),
    UserNotNamed: Kind("user-not-named", HTTPStatus.BAD_REQUEST),
    ErasureNotConfirmed: Kind("erasure-not-confirmed", HTTPStatus.CONFLICT),
    NotFound: Kind("not-found", HTTPStatus.NOT_FOUND),
    UserErased: Kind("user-erased", HTTPStatus.GONE),
    IdempotencyConflict: Kind("idempotency-conflict", HTTPStatus.CONFLICT),
    KnowledgeExists: Kind("knowledge-exists", HTTPStatus.CONFLICT),
    MemoryOff: Kind("memory-off", HTTPStatus.CONFLICT),
    NotJoined: Kind("not-joined", HTTPStatus.CONFLICT),
    RunEnded: Kind("run-ended", HTTPStatus.CONFLICT),
    PathTooLong: INVALID,
    TurnsOutOfOrder: Kind("turns-out-of-order", HTTPStatus.CONFLICT),
    BodyNotJson: Kind("body-not-json", HTTPStatus.UNSUPPORTED_MEDIA_TYPE),
    BodyTooLarge: Kind("body-too-large", HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    BodyTooComplex: Kind("body-too-complex", HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    BodyTooCostly: Kind("body-too-costly", HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    BodyIncomplete: Kind("body-incomplete", HTTPStatus.BAD_REQUEST),
    Busy: Kind("busy", HTTPStatus.SERVICE_UNAVAILABLE, RETRY),
    PayloadTooLarge: Kind("payload-too-large", HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    DatabaseUnavailable: Kind("database-unavailable", HTTPStatus.SERVICE_UNAVAILABLE, RETRY),
    KeysUnavailable: Kind("signing-keys-unavailable", HTTPStatus.SERVICE_UNAVAILABLE, RETRY),
    EmbedderError: Kind("embedder-unavailable", HTTPStatus.SERVICE_UNAVAILABLE, RETRY),
    ModelError: Kind("model-unavailable", HTTPStatus.SERVICE_UNAVAILABLE, RETRY),
    MasterKeyMismatch: Kind("master-key-mismatch", HTTPStatus.SERVICE_UNAVAILABLE, RETRY),
    SealBroken: Kind("seal-broken", HTTPStatus.INTERNAL_SERVER_ERROR),
    SecretInName: Kind("secret-in-name", HTTPStatus.UNPROCESSABLE_ENTITY),
    NotNow: Kind("not-now", HTTPStatus.TOO_MANY_REQUESTS),
    RateExceeded: Kind("rate-exceeded", HTTPStatus.TOO_MANY_REQUESTS),
    TooManyAtOnce: Kind("too-many-at-once", HTTPStatus.TOO_MANY_REQUESTS),
    BacklogFull: Kind("backlog-full", HTTPStatus.TOO_MANY_REQUESTS),
    QueueFull: Kind("queue-full", HTTPStatus.SERVICE_UNAVAILABLE),
    McpNotInstalled: Kind("mcp-not-installed", HTTPStatus.NOT_IMPLEMENTED),
    CasebankError: Kind("internal-error", HTTPStatus.INTERNAL_SERVER_ERROR),
}


def kind_of(error: type[CasebankError]) -> Kind:
    """Returns the entry in ``KINDS`` for a type of error, or for the nearest base class with an entry."""
    return next(KINDS[cls] for cls in error.__mro__ if cls in KINDS)


def problem(kind: Kind, detail: str, **more: object) -> JSONResponse:
    """Returns the problem document: type, title, status, detail and further members (RFC 9457, section 3)."""
    with_problem(kind.slug)
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
    for kind in (CasebankError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, _answer)


async def _answer(_request: Request, error: Exception) -> JSONResponse:
    """Returns the problem document of an error that ended a request."""
    if isinstance(error, NotNow):
        retry_s = math.ceil(error.retry_s)
        headers = {"Retry-After": str(retry_s)} | (fields([error.standing]) if isinstance(error, RateExceeded) else {})
        kind = replace(kind_of(type(error)), headers=tuple(headers.items()))
        retry_at = (datetime.now(UTC) + timedelta(seconds=retry_s)).isoformat(timespec="seconds")
        # the names of the draft that the RateLimit fields are from
        return problem(kind, str(error), retry_at=retry_at, **{"violated-policies": [error.policy]})
    if isinstance(error, CasebankError):
        more: dict[str, object] = {}  # members that a client can act on
        if isinstance(error, BodyTooLarge):
            more = {"max_bytes": error.max_bytes}
        elif isinstance(error, UserErased) and error.erased_at is not None:
            earliest = datetime.fromisoformat(error.erased_at) + timedelta(seconds=LEEWAY_S)
            more = {
                "erased_at": error.erased_at,
                "tokens_issued_after": earliest.isoformat(),
                "begin_again": "POST /v1/users/begin-again",
            }
        return problem(kind_of(type(error)), str(error), **more)
    if isinstance(error, RequestValidationError):  # without the values, which may be secret or not text
        return problem(INVALID, "the request does not have the documented form", errors=faults(error.errors()))
    if isinstance(error, HTTPException):
        status = HTTPStatus(error.status_code)
        detail = str(error.detail)
        if detail == status.phrase:
            detail = _NO_ROUTE.get(status, detail)
        kind = Kind(status.phrase.lower().replace(" ", "-"), status, tuple((error.headers or {}).items()))
        return problem(kind, detail)
    log.error("request.crash", error=type(error).__name__, exc_info=error)  # the answer does not tell the cause
    return problem(KINDS[CasebankError], "something broke on this side")
