"""The MCP server over HTTP: one response to each request, without sessions."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message

from app.edge.intake.reading import RouteInput, take
from app.edge.intake.route import INLINE_BYTES, Intake
from app.mcp.server import make_server, without_halves
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


@dataclass(frozen=True, slots=True)
class McpOverHttp:
    """Answers requests that were authenticated and admitted."""

    manager: StreamableHTTPSessionManager

    async def answer(self, request: Request, body: bytes, asking: Asking) -> Response:
        """Returns the response to the message in the body."""
        answer, waiting = _Response(), [{"type": "http.request", "body": without_halves(body), "more_body": False}]

        async def receive() -> Message:  # the body was read already: it is handed out once more
            return waiting.pop() if waiting else await request.receive()

        await self.manager.handle_request({**request.scope, _ASKING: asking}, receive, answer.send)
        return Response(bytes(answer.body), answer.status, dict(answer.headers))


@asynccontextmanager
async def mcp_over_http(intake: Intake) -> AsyncIterator[McpOverHttp]:
    """Yields the server for as long as the block runs.

    It has no sessions and no streams, so any replica answers any request, also after a restart. The MCP
    library's checks of Host and Origin are off: the route checks the origin, and every request needs a token.
    """

    async def check(user_sub: str, kind: type[object], body: bytes) -> RouteInput:
        if len(body) <= INLINE_BYTES:
            return take(kind, body, origin())
        return await intake.aside.run(user_sub, take, kind, body, origin())

    server = make_server(lambda context: cast("Request", context.request).scope[_ASKING], check)
    manager = StreamableHTTPSessionManager(app=server, json_response=True, stateless=True)
    async with _managed_in_own_task(manager):
        yield McpOverHttp(manager)


@asynccontextmanager
async def _managed_in_own_task(manager: StreamableHTTPSessionManager) -> AsyncIterator[None]:
    """Runs the manager in its own task during the block: its task group must be entered and left by the same task."""
    started, ended = asyncio.get_running_loop().create_future(), asyncio.Event()

    async def run() -> None:
        async with manager.run():
            started.set_result(None)
            await ended.wait()

    running = asyncio.create_task(run())
    await asyncio.wait([running, started], return_when=asyncio.FIRST_COMPLETED)
    try:
        yield
    finally:
        ended.set()
        await running
