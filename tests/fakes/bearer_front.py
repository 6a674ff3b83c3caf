"""What puts a bearer token on every request and passes it on: a stand-in for a client's configuration."""

import socket
import threading
from collections.abc import Mapping
from typing import Self

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.processes import CERTIFICATES

HOP_BY_HOP = {"connection", "content-length", "transfer-encoding"}


class BearerFront:
    """Listens on a port of its own for as long as the `with` lasts; Host and Origin are passed on as they came."""

    def __init__(self, target: str, headers: Mapping[str, str]) -> None:
        self._target, self._headers = target, dict(headers)
        self._socket = socket.create_server(("127.0.0.1", 0))
        route = Route("/{path:path}", self._pass_on, methods=["GET", "POST", "DELETE", "OPTIONS"])
        self._server = uvicorn.Server(uvicorn.Config(Starlette(routes=[route]), log_level="critical", lifespan="off"))
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = self._server.force_exit = True
        self._thread.join()
        self._socket.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    async def _pass_on(self, request: Request) -> Response:
        came = {name: value.strip() for name, value in request.headers.items() if name not in HOP_BY_HOP}
        async with httpx.AsyncClient(timeout=60, verify=CERTIFICATES) as client:
            answer = await client.request(
                request.method,
                f"{self._target}{request.url.path}",
                params=request.query_params.multi_items(),
                content=await request.body(),
                headers={**came, **self._headers},
            )
        told = {name: value for name, value in answer.headers.items() if name not in HOP_BY_HOP | {"content-encoding"}}
        return Response(answer.content, answer.status_code, told)
