"""The Model Context Protocol at `/mcp`, and its OAuth metadata."""

from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Annotated, Any
from urllib.parse import quote, urlsplit

from fastapi import Query, Request, Response
from pydantic import BaseModel, Field
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from app.auth.errors import NotAllowed, NotAuthenticated
from app.edge.dependencies import Caller, Parts
from app.edge.intake.body import check_counts
from app.edge.intake.route import BodyRoute, Intake
from app.edge.problems import kind_of, problem
from app.edge.routers import api_router
from app.mcp.installed import answer_over_http
from app.memory_tools.asking import Asking
from app.settings import Settings
from writer.privacy.names import nameable
from writer.run import AgentKey


class ResourceMetadataOut(BaseModel):
    """The metadata of a protected resource (RFC 9728)."""

    resource: str = Field(description="resource that the token must be issued for")
    resource_name: str = "casebank"
    authorization_servers: list[str] | None = Field(
        default=None, description="issuers of tokens; absent if this installation issues its own tokens"
    )
    bearer_methods_supported: list[str] = ["header"]


PATH, METADATA = "/mcp", "/.well-known/oauth-protected-resource"
PAGES_READ = (PATH, METADATA, METADATA + PATH)
"""Paths whose answers a page of another origin may read."""
MAX_BYTES = 256 * 1024
"""Maximum size of one message, which is parsed before the tool checks its arguments."""
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class McpRoute(BodyRoute):
    """A route that refuses foreign web pages and adds the address of its metadata to a 401."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Returns the handler of a request: the route's own, behind the checks of the headers.

        Raises:
            NotAllowed: the request comes from a page of another origin, as with DNS rebinding.
        """
        handle = super().get_route_handler()

        async def pointing(request: Request) -> Response:
            settings: Settings = request.app.state.settings
            if not may_call(request.headers.get("origin"), settings):
                raise NotAllowed("pages of this origin may not call /mcp; CASEBANK_MCP_ORIGINS lists allowed origins")
            try:
                return await handle(request)
            except NotAuthenticated as refused:
                where = f'Bearer resource_metadata="{quote(_base(request) + METADATA + PATH, safe=":/[]@")}"'
                return problem(replace(kind_of(NotAuthenticated), headers=(("WWW-Authenticate", where),)), str(refused))

        return pointing


router = api_router("memory as tools", route_class=McpRoute)
metadata = api_router("memory as tools", responses={})

Agent = Annotated[AgentKey | None, Query(description="agent whose memory is used; default: CASEBANK_MCP_AGENT")]


@router.post(
    PATH,
    response_class=Response,
    responses={
        202: {"description": "a notification, which has no response"},
    },
)
async def speak_mcp(
    request: Request, response: Response, parts: Parts, caller: Caller, agent: Agent = None
) -> Response:
    """Answers one message of the Model Context Protocol, as JSON and without a session.

    The body is a JSON-RPC message, at most 256 KiB; a body that is none gets a JSON-RPC error with status 400. The
    tools are those of `/v1/memory-tools`.
    """
    answer_message = await answer_over_http()
    if agent is None:  # else its limit is counted already
        await parts.admission.of_agent(caller, "writes", parts.settings.mcp_agent)
    asking = Asking(parts, caller, nameable(agent or parts.settings.mcp_agent))
    intake: Intake = request.app.state.intake
    bounded = replace(intake, max_bytes=min(intake.max_bytes, MAX_BYTES))
    async with bounded.body(request, caller.user_sub) as body:
        check_counts(body)
        answer = await answer_message(request, body, asking)
    answer.headers.update(response.headers)  # rate limits of the caller
    return answer


@metadata.get(METADATA, response_model_exclude_none=True, name="tell_resource")
@metadata.get(METADATA + PATH, response_model_exclude_none=True, name="tell_mcp_resource")
async def tell_resource(request: Request) -> ResourceMetadataOut:
    """Returns the metadata with which a client gets a token for `/mcp` (RFC 9728)."""
    settings: Settings = request.app.state.settings
    issuers = [settings.jwt_issuer] if settings.jwks_url and urlsplit(settings.jwt_issuer).scheme == "https" else None
    return ResourceMetadataOut(resource=_base(request) + PATH, authorization_servers=issuers)


def open_to_pages(app: ASGIApp, settings: Settings) -> ASGIApp:
    """Returns the app with the header fields by which a browser lets the pages that may call `/mcp` do so (CORS)."""
    opened = CORSMiddleware(
        app, ["*"], ["*"], ["*"], allow_private_network=True, expose_headers=["WWW-Authenticate", "Retry-After"]
    )

    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        origin = Headers(scope=scope).get("origin") if scope.get("path") in PAGES_READ else None
        is_open = origin is not None and may_call(origin, settings)
        await (opened if is_open else app)(scope, receive, send)

    return call


def may_call(origin: str | None, settings: Settings) -> bool:
    """Returns whether a request with this Origin header is allowed; without one, as from a program, it is.

    A page that reaches this machine under its own host name (DNS rebinding) has that name in its origin.
    """
    if origin is None or origin in settings.mcp_origins.split():
        return True
    if settings.public_url is not None and origin == "{0.scheme}://{0.netloc}".format(urlsplit(settings.public_url)):
        return True
    try:
        return urlsplit(origin).hostname in LOOPBACK
    except ValueError:
        return False


def _base(request: Request) -> str:
    """Returns the base URL of the service for the caller, without a trailing slash."""
    settings: Settings = request.app.state.settings
    return (settings.public_url or str(request.base_url)).rstrip("/")
