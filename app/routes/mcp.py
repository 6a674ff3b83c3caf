"""The Model Context Protocol at `/mcp`, and the metadata that says to whoever was refused where tokens come from."""

from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Annotated, Any
from urllib.parse import quote, urlsplit

from fastapi import APIRouter, Query, Request, Response

from app.auth.tokens import NotAllowed, NotAuthenticated
from app.edge.dependencies import Caller, Parts
from app.edge.errors import McpNotInstalled
from app.edge.intake.counts import check_counts
from app.edge.intake.errors import BodyIncomplete, BodyTooComplex, BodyTooLarge, Busy
from app.edge.intake.route import BodyRoute, Intake
from app.edge.problems import DOCUMENTED, kind_of, problem, raises
from app.mcp.installed import McpWhenAsked
from app.memory_tools.asking import Asking
from app.schemas.mcp import ResourceMetadataOut
from app.settings import Settings
from writer.privacy.names import nameable
from writer.run import AgentKey

PATH, METADATA = "/mcp", "/.well-known/oauth-protected-resource"
MAX_BYTES = 256 * 1024
"""Of one message, which is parsed before the tool's own checks see it."""
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class McpRoute(BodyRoute):
    """A route that no page from elsewhere may call, and that says with a 401 where its metadata is."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Returns what answers a request: the route's own handler, behind what it asks of the headers.

        Raises:
            NotAllowed: a page asks that is from elsewhere, as one does that has its own name resolve to this machine.
        """
        handle = super().get_route_handler()

        async def pointing(request: Request) -> Response:
            settings: Settings = request.app.state.settings
            if not may_call(request.headers.get("origin"), settings):
                raise NotAllowed("a page from there may not call this; CASEBANK_MCP_ORIGINS lists those that may")
            try:
                return await handle(request)
            except NotAuthenticated as refused:
                where = f'Bearer resource_metadata="{quote(_base(request) + METADATA + PATH, safe=":/[]@")}"'
                return problem(replace(kind_of(refused), headers=(("WWW-Authenticate", where),)), str(refused))

        return pointing


router = APIRouter(tags=["memory as tools"], responses=DOCUMENTED, route_class=McpRoute)
metadata = APIRouter(tags=["memory as tools"], route_class=BodyRoute)

Agent = Annotated[AgentKey | None, Query(description="whose memory; unset: as CASEBANK_MCP_AGENT says")]


@router.post(
    PATH,
    response_class=Response,
    responses={
        **raises(McpNotInstalled, BodyTooLarge, BodyTooComplex, Busy),
        202: {"description": "a notification, which has no answer"},
        400: {
            **raises(BodyIncomplete)[400],
            "description": "the body is not whole; or, as an error of JSON-RPC, it is no message of the protocol",
        },
    },
)
async def speak_mcp(
    request: Request, response: Response, parts: Parts, caller: Caller, agent: Agent = None
) -> Response:
    """Answers one message of the Model Context Protocol, as JSON; there is no session to keep.

    The body is a JSON-RPC message, at most 256 KiB. The tools are those of `/v1/memory-tools`.
    """
    mcp: McpWhenAsked = request.app.state.mcp
    served = await mcp.served()
    asking = Asking(parts, caller, nameable(agent or parts.settings.mcp_agent))
    intake: Intake = request.app.state.intake
    bounded = replace(intake, max_bytes=min(intake.max_bytes, MAX_BYTES))
    async with bounded.body(request, caller.user_sub) as body:
        check_counts(body)
        answer = await served.answer(request, body, asking)
    answer.headers.update(response.headers)  # where the caller stands
    return answer


@metadata.get(METADATA, response_model_exclude_none=True, name="tell_resource")
@metadata.get(METADATA + PATH, response_model_exclude_none=True, name="tell_mcp_resource")
async def tell_resource(request: Request) -> ResourceMetadataOut:
    """Returns what a client has to know of `/mcp` to get a token for it (RFC 9728)."""
    settings: Settings = request.app.state.settings
    issuers = [settings.jwt_issuer] if settings.jwks_url and urlsplit(settings.jwt_issuer).scheme == "https" else None
    return ResourceMetadataOut(resource=_base(request) + PATH, authorization_servers=issuers)


def may_call(origin: str | None, settings: Settings) -> bool:
    """Returns whether a request from a page of this origin is answered; a program sends none, and is.

    A page that reaches this machine by a name of its own (DNS rebinding) gives itself away by that name.
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
    """Returns where the service is for the caller, without a slash at the end."""
    settings: Settings = request.app.state.settings
    return (settings.public_url or str(request.base_url)).rstrip("/")
