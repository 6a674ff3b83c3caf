"""A real HTTP server on loopback that speaks OpenAI's wire format, and misbehaves on request.

with OpenAIServer(dimension=64) as server:
    server.fault = Fault.STATUS_500               # every answer from now on
    server.script(Fault.STATUS_429, None)         # the next two answers; comes before `fault`
    embedder = OpenAIEmbedder(Endpoint(base_url=server.base_url, …))
    assert server.count == 2
"""

import asyncio
import json
import re
import socket
import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache
from hashlib import blake2b
from typing import Any, Self

import numpy as np
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

SLOW_S = 0.3
"""How long SLOW takes to answer, in seconds."""


class Fault(Enum):
    # an answer of the agreed form with the wrong things in it
    WRONG_DIMENSION = auto()
    TOO_FEW = auto()
    TOO_MANY = auto()
    NO_ITEMS = auto()
    SHUFFLED = auto()  # with the right index: allowed
    DUPLICATE_INDEX = auto()
    HOLE_IN_INDEX = auto()
    NAN = auto()
    INFINITE = auto()
    NULL_NUMBER = auto()
    NULL_EMBEDDING = auto()
    TEXT_EMBEDDING = auto()
    ZERO_VECTOR = auto()
    HUGE_NUMBERS = auto()
    # no answer of the agreed form
    STATUS_400 = auto()
    STATUS_401 = auto()
    STATUS_403 = auto()
    STATUS_404 = auto()
    STATUS_408 = auto()
    STATUS_429 = auto()
    STATUS_429_WAIT_240 = auto()
    STATUS_429_WAIT_0 = auto()
    STATUS_500 = auto()
    STATUS_503 = auto()
    HTML = auto()
    PROSE = auto()
    OTHER_JSON = auto()
    NEVER = auto()
    TRICKLES = auto()  # a blank now and then, so that no read ever times out
    HANGS_UP = auto()
    STATUS_400_HANGS_UP = auto()
    STATUS_500_HANGS_UP = auto()
    # a right answer, late
    SLOW = auto()


@dataclass(frozen=True, slots=True)
class Received:
    """One request, as it came."""

    path: str
    authorization: str
    payload: dict[str, Any]


class OpenAIServer:
    """Answers POST /v1/embeddings from a thread of its own, for as long as the `with` lasts."""

    def __init__(self, dimension: int = 64) -> None:
        self.dimension = dimension
        self.fault: Enum | None = None
        self.requests: list[Received] = []
        self._script: deque[Enum | None] = deque()
        self._socket = socket.create_server(("127.0.0.1", 0))  # queues connections before the thread is up
        app = Starlette(routes=self.routes())
        self._server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off"))
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)

    def routes(self) -> list[Route]:
        return [Route("/v1/embeddings", self.serve(self._embeddings), methods=["POST"])]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = self._server.force_exit = True
        self._thread.join()
        self._socket.close()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"

    @property
    def count(self) -> int:
        return len(self.requests)

    def script(self, *faults: Enum | None) -> None:
        """Queues what to do with the next requests, one each; None answers well."""
        self._script.extend(faults)

    def reset(self) -> None:
        """Forgets faults and requests, so that the next test starts clean."""
        self.fault = None
        self.requests.clear()
        self._script.clear()

    def serve(self, answer: Callable[[dict[str, Any], Any], Response]) -> Callable[..., Awaitable[Response]]:
        """Returns an endpoint that records the request, commits the fault that is due, or else answers."""

        async def endpoint(request: Request) -> Response:
            payload = await request.json()
            self.requests.append(Received(request.url.path, request.headers.get("authorization", ""), payload))
            fault = self._script.popleft() if self._script else self.fault
            if fault in REFUSALS:
                return REFUSALS[fault]()
            if fault is Fault.NEVER:
                await _client_gave_up(request)
            if fault is Fault.SLOW:
                await asyncio.sleep(SLOW_S)
            return answer(payload, fault)

        return endpoint

    def _embeddings(self, payload: dict[str, Any], fault: Fault | None) -> Response:
        texts = [payload["input"]] if isinstance(payload["input"], str) else payload["input"]
        if not all(texts):
            return error(400, "input cannot be an empty string")
        items = [_item(index, vector(text, self.dimension)) for index, text in enumerate(texts)]
        data = DISTORTIONS[fault](items) if fault in DISTORTIONS else items
        usage = {"prompt_tokens": 0, "total_tokens": 0}
        return as_json({"object": "list", "data": data, "model": payload["model"], "usage": usage})


@cache
def _word(word: str, dimension: int) -> np.ndarray:
    seed = int.from_bytes(blake2b(word.encode(), digest_size=8).digest(), "big")
    return np.random.default_rng(seed).standard_normal(dimension)


def vector(text: str, dimension: int) -> list[float]:
    """Returns the sum of the words' own random directions: texts that share words point the same way."""
    words = re.findall(r"\w+", text.lower()) or [text]
    return np.sum([_word(word, dimension) for word in words], axis=0).tolist()


Items = list[dict[str, Any]]


def _item(index: int, embedding: Any) -> dict[str, Any]:
    return {"object": "embedding", "index": index, "embedding": embedding}


def _filled(number: Any) -> Callable[[Items], Items]:
    """Returns a distortion that puts the number everywhere in the last vector."""
    return lambda items: [*items[:-1], _item(len(items) - 1, [number] * len(items[-1]["embedding"]))]


def _with_indices(choose: Callable[[int], Sequence[int]]) -> Callable[[Items], Items]:
    return lambda items: [
        _item(index, item["embedding"]) for index, item in zip(choose(len(items)), items, strict=True)
    ]


DISTORTIONS: dict[Enum | None, Callable[[Items], Items]] = {
    Fault.WRONG_DIMENSION: lambda items: [_item(item["index"], item["embedding"][1:]) for item in items],
    Fault.TOO_FEW: lambda items: items[:-1],
    Fault.TOO_MANY: lambda items: [*items, _item(len(items), items[-1]["embedding"])],
    Fault.NO_ITEMS: lambda _: [],
    Fault.SHUFFLED: lambda items: items[::-1],
    Fault.DUPLICATE_INDEX: _with_indices(lambda count: [0] * count),
    Fault.HOLE_IN_INDEX: _with_indices(lambda count: range(1, count + 1)),
    Fault.NAN: _filled(float("nan")),
    Fault.INFINITE: _filled(float("inf")),
    Fault.NULL_NUMBER: _filled(None),
    Fault.NULL_EMBEDDING: lambda items: [_item(item["index"], None) for item in items],
    Fault.TEXT_EMBEDDING: lambda items: [_item(item["index"], "AACAPwAAAAA=") for item in items],
    Fault.ZERO_VECTOR: _filled(0.0),
    Fault.HUGE_NUMBERS: _filled(1e300),
}


def as_json(content: Any) -> Response:
    # json.dumps writes NaN and Infinity, as many a Python server does; JSONResponse would refuse.
    return Response(json.dumps(content), media_type="application/json")


def error(status: int, message: str, **headers: str) -> Response:
    shown = {name.replace("_", "-"): value for name, value in headers.items()}
    return JSONResponse({"error": {"message": message, "type": "fault", "code": None}}, status, headers=shown)


async def _trickle() -> AsyncIterator[bytes]:
    while True:
        yield b" "
        await asyncio.sleep(0.05)


class _HangsUp(Response):
    """Promises a body and closes the connection half-way."""

    def __init__(self, status: int = 200) -> None:
        super().__init__(status_code=status)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        del scope, receive
        headers = [(b"content-length", b"1000")]
        await send({"type": "http.response.start", "status": self.status_code, "headers": headers})
        await send({"type": "http.response.body", "body": b'{"object": "li'})


REFUSALS: dict[Enum | None, Callable[[], Response]] = {
    Fault.STATUS_400: lambda: error(400, "this model's maximum context length is 8192 tokens"),
    Fault.STATUS_401: lambda: error(401, "Incorrect API key provided: sk-made-up"),  # OpenAI quotes the key
    Fault.STATUS_403: lambda: error(403, "you are not allowed to sample from this model"),
    Fault.STATUS_404: lambda: error(404, "the model does not exist"),
    Fault.STATUS_408: lambda: error(408, "request timeout"),
    Fault.STATUS_429: lambda: error(429, "rate limit reached"),
    Fault.STATUS_429_WAIT_240: lambda: error(429, "rate limit reached", retry_after="240"),
    Fault.STATUS_429_WAIT_0: lambda: error(429, "rate limit reached", retry_after="0"),
    Fault.STATUS_500: lambda: error(500, "the server had an error"),
    Fault.STATUS_503: lambda: error(503, "the model is loading"),
    Fault.HTML: lambda: HTMLResponse("<!doctype html><title>Sign in</title>"),
    Fault.PROSE: lambda: PlainTextResponse("The upstream is warming up, please come back."),
    Fault.OTHER_JSON: lambda: as_json({"embeddings": [[1.0, 0.0]]}),
    Fault.TRICKLES: lambda: StreamingResponse(_trickle(), media_type="application/json"),
    Fault.HANGS_UP: _HangsUp,
    Fault.STATUS_400_HANGS_UP: lambda: _HangsUp(400),
    Fault.STATUS_500_HANGS_UP: lambda: _HangsUp(500),
}


async def _client_gave_up(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
