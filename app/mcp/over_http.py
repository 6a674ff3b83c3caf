"""The server on the service's own paths: one answer to one request, and nothing kept between two of them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive

from app.edge.intake.reading import Taken, take
from app.edge.intake.route import INLINE_BYTES, Intake
from app.mcp.server import Context, make_server
from app.memory_tools.asking import Asking
from retrieval.telemetry import origin

_ASKING = "casebank.asking"


@dataclass(slots=True)
class _Answer:
    """What the protocol's server sends, whole before it goes on: until then the request has its turn and its limits."""

    status: int = 500
    headers: Headers = field(default_factory=Headers)
    body: bytearray = field(default_factory=bytearray)

    async def send(self, message: Message) -> None:
        """Keeps a part of the answer."""
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], Headers(raw=message["headers"])
        else:
            self.body += message.get("body", b"")


@dataclass(frozen=True, slots=True)
class McpOverHttp:
    """Answers requests that were let in already."""

    manager: StreamableHTTPSessionManager

    async def answer(self, request: Request, body: bytes, asking: Asking) -> Response:
        """Returns the answer to the message in the body."""
        answer = _Answer()
        await self.manager.handle_request(
            {**request.scope, _ASKING: asking}, _again(body, request.receive), answer.send
        )
        return Response(bytes(answer.body), answer.status, dict(answer.headers))


@asynccontextmanager
async def mcp_over_http(intake: Intake) -> AsyncIterator[McpOverHttp]:
    """Yields what answers over HTTP, while the block runs.

    No session and no stream: whichever replica gets a request answers it, after a restart as before. The manager's own
    checks of Host and Origin are off: the route has asked where a page is from, and there is no way in without a token.
    """

    async def check(user_sub: str, kind: type[object], body: bytes) -> Taken:
        if len(body) <= INLINE_BYTES:
            return take(kind, body, origin())
        return await intake.aside.run(user_sub, take, kind, body, origin())

    server = make_server(_asking_of, check)
    manager = StreamableHTTPSessionManager(app=server, json_response=True, stateless=True)
    async with _in_a_task_of_its_own(manager):
        yield McpOverHttp(manager)


@asynccontextmanager
async def _in_a_task_of_its_own(manager: StreamableHTTPSessionManager) -> AsyncIterator[None]:
    """Runs the manager while the block does, whichever tasks begin and end that: its task group wants one for both."""
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


def _asking_of(context: Context) -> Asking:
    asking: Asking = cast("Request", context.request).scope[_ASKING]
    return asking


def _again(body: bytes, receive: Receive) -> Receive:
    """Returns what hands the body out once more, which was read already, and then whatever comes."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return waiting.pop() if waiting else await receive()

    return next_message
