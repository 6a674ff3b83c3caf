"""Follows every request: gives it an id, counts it by route and status, and logs a refusal."""

import hashlib
import re
from contextvars import ContextVar
from dataclasses import dataclass

import structlog
import uuid_utils.compat as uuids
from prometheus_client import Counter
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from retrieval.telemetry import log

REQUESTS = Counter("casebank_requests_total", "Requests, by route and status", ["method", "route", "status"])
REFUSED = Counter("casebank_refusals_total", "Requests that were refused, by type of problem", ["type"])

HEADER = "X-Request-Id"
OTHER = "other"
"""Label for the route of an unknown path, and for an unknown method."""
HASH_CHARS = 16

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
_METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
_FIRST_REFUSAL = 400


@dataclass(slots=True)
class Followed:
    """A request under way.

    Attributes:
        request_id: id in the answer and in every line of the log.
        user: digest of the user's name; None: not known yet.
        problem: type of problem in the answer, without its prefix.
        status: status of the answer; 500 until there is one.
    """

    request_id: str
    user: str | None = None
    problem: str | None = None
    status: int = 500


_current: ContextVar[Followed | None] = ContextVar("followed", default=None)


def of_user(user_sub: str) -> None:
    """Notes the user of the request under way."""
    if (followed := _current.get()) is not None:
        followed.user = hashlib.sha256(user_sub.encode()).hexdigest()[:HASH_CHARS]


def with_problem(slug: str) -> None:
    """Notes the type of problem in the answer to the request under way."""
    if (followed := _current.get()) is not None:
        followed.problem = slug


class Follow:
    """ASGI middleware that follows each request; it is the outermost, so it sees the refusals of other middleware."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves the request, and reports its answer."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        sent = Headers(scope=scope).get(HEADER, "")
        followed = Followed(sent if _ID.fullmatch(sent) else str(uuids.uuid7()))  # the caller's own, if fit for a log
        token = _current.set(followed)

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                followed.status = message["status"]
                MutableHeaders(scope=message)[HEADER] = followed.request_id
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=followed.request_id):
            try:
                await self.app(scope, receive, answer)
            finally:
                _current.reset(token)
                method = scope["method"] if scope["method"] in _METHODS else OTHER
                route = getattr(scope.get("route"), "path", OTHER)
                REQUESTS.labels(method, route, followed.status).inc()
                if followed.status >= _FIRST_REFUSAL:
                    problem = followed.problem or OTHER
                    REFUSED.labels(problem).inc()
                    log.info(
                        "request.refused",
                        method=method,
                        route=route,
                        status=followed.status,
                        type=problem,
                        user=followed.user,
                    )
