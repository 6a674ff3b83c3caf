"""The MCP server over HTTP: one response to each request, without sessions."""

from dataclasses import dataclass, field
from typing import cast

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message

from app.edge.intake.reading import RouteInput, take
from app.edge.intake.route import INLINE_BYTES, Intake
from app.mcp.server import Context, make_server, without_halves
from app.memory_tools.asking import Asking
from retrieval.telemetry import origin

_ASKING = "casebank.asking"


@dataclass(slots=True)
class _Response:
    """The complete response of the protocol's server, collected while the request counts against its user's limits."""

    status: int = 500
    headers: Headers = field(default_factory=Headers)
    body: bytearray = field(default_factory=bytearray)

    async def send(self, message: Message) -> None:
        """Stores a part of the response."""
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], Headers(raw=message["headers"])
        else:
            self.body += message.get("body", b"")


async def answer(request: Request, body: bytes, asking: Asking) -> Response:
    """Returns the response to the message in the body of a request that was authenticated and admitted.

    It has no session and no stream, so any replica answers any request, also after a restart. The MCP library's checks
    of Host and Origin are off: the route checks the origin, and every request needs a token.
    """
    collected, waiting = _Response(), [{"type": "http.request", "body": without_halves(body), "more_body": False}]

    async def receive() -> Message:  # the body was read already: it is handed out once more
        return waiting.pop() if waiting else await request.receive()

    manager = StreamableHTTPSessionManager(app=_SERVER, json_response=True, stateless=True)
    async with manager.run():
        await manager.handle_request({**request.scope, _ASKING: asking}, receive, collected.send)
    return Response(bytes(collected.body), collected.status, dict(collected.headers))


def asking_of(context: Context) -> Asking:
    """Returns the user and agent of a request."""
    asking: Asking = cast("Request", context.request).scope[_ASKING]
    return asking


async def check(context: Context, kind: type[object], arguments: bytes) -> RouteInput:
    """Validates the arguments of a call, large ones in a side process."""
    if len(arguments) <= INLINE_BYTES:
        return take(kind, arguments, origin())
    intake: Intake = cast("Request", context.request).app.state.intake
    return await intake.aside.run(asking_of(context).author.user_sub, take, kind, arguments, origin())


_SERVER = make_server(asking_of, check)
