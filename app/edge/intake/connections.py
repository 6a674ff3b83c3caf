"""Connections in bounds: how many there are, in all and from one address, and how long each part of a request may take.

uvicorn closes a connection on which nobody asks any more, and waits for everything else without end.
"""

import asyncio
import json
from collections import Counter
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial
from http import HTTPStatus
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app.settings import Settings

MAX_HEAD_BYTES = 64 * 1024
"""Of the first line and the headers together; the parser itself knows no limit."""


class _Awaited(Enum):
    """What of a request is to come."""

    NOTHING = auto()
    HEAD = auto()
    BODY = auto()


@dataclass(slots=True)
class Bounds:
    """What holds for all connections of a server, and how many there are from each address."""

    connections: int
    connections_per_address: int
    headers_timeout_s: float
    body_timeout_s: float
    open_from: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, settings: Settings) -> "Bounds":
        """Returns the bounds that the settings name."""
        return cls(
            settings.connections.total,
            settings.connections.per_address or settings.connections.total,
            settings.timeouts_s.headers,
            settings.timeouts_s.body,
        )

    def opened(self, address: str) -> bool:
        """Counts a connection, and returns whether there is room for it."""
        self.open_from[address] += 1
        return self.open_from[address] <= self.connections_per_address and self.open_from.total() <= self.connections

    def closed(self, address: str) -> None:
        """Counts a connection no more."""
        self.open_from[address] -= 1
        if not self.open_from[address]:
            del self.open_from[address]


class BoundedConnection(HttpToolsProtocol):
    """One connection of a client, which is closed when it takes too long or brings too much."""

    def __init__(self, bounds: Bounds, **given_by_uvicorn: Any) -> None:
        super().__init__(**given_by_uvicorn)
        self._bounds = bounds
        self._address = ""
        self._admitted = False
        self._awaited = _Awaited.HEAD
        self._requests = 0
        self._timed: tuple[int, _Awaited] | None = None
        self._reading_timer: asyncio.TimerHandle | None = None
        self._writing_timer: asyncio.TimerHandle | None = None
        self._head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's own
        """Lets the connection in, or tells that there are too many."""
        super().connection_made(transport)
        self._address = self.client[0] if self.client else ""
        self._admitted = self._bounds.opened(self._address)
        if self._admitted:
            self._set_timer()
        else:
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, "too-many-connections", "there are too many connections")

    def connection_lost(self, exc: Exception | None) -> None:
        """Forgets the connection."""
        self._bounds.closed(self._address)
        self._stop(self._reading_timer)
        self._stop(self._writing_timer)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Reads on, and from then on waits for what is still to come of the request."""
        if not self._admitted or self.transport.is_closing():
            return
        before = self._requests, self._awaited
        super().data_received(data)
        if before == (self._requests, _Awaited.NOTHING):
            self._awaited = _Awaited.HEAD  # something came that the parser takes for no request yet
        self._set_timer()
        self._count_head(data)

    def on_message_begin(self) -> None:
        """Notes that a request begins."""
        super().on_message_begin()
        self._requests += 1
        self._awaited, self._head_bytes = _Awaited.HEAD, 0

    def on_headers_complete(self) -> None:
        """Notes that only the body is to come."""
        self._awaited = _Awaited.BODY
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Notes that the request is whole."""
        self._awaited = _Awaited.NOTHING
        super().on_message_complete()

    def pause_writing(self) -> None:
        """Waits for the client to read its answer, and not for ever."""
        super().pause_writing()
        self._writing_timer = self.loop.call_later(self._bounds.body_timeout_s, self.transport.abort)

    def resume_writing(self) -> None:
        """Notes that the client reads on."""
        super().resume_writing()
        self._stop(self._writing_timer)

    def _set_timer(self) -> None:
        """Starts the time of what is awaited, unless it runs already: more bytes of the same part buy no more time."""
        awaited = self._requests, self._awaited
        if awaited == self._timed:
            return
        self._stop(self._reading_timer)
        self._timed = awaited
        if self._awaited is not _Awaited.NOTHING:
            bounds = self._bounds
            longest = bounds.headers_timeout_s if self._awaited is _Awaited.HEAD else bounds.body_timeout_s
            self._reading_timer = self.loop.call_later(longest, self._too_slow)

    def _count_head(self, data: bytes) -> None:
        if self._awaited is _Awaited.HEAD:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES:
                status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
                self._refuse(status, "headers-too-large", f"headers may have at most {MAX_HEAD_BYTES} bytes")

    def _too_slow(self) -> None:
        self._refuse(HTTPStatus.REQUEST_TIMEOUT, "too-slow", "the request took too long to arrive")

    def _refuse(self, status: HTTPStatus, slug: str, detail: str) -> None:
        """Closes the connection, with an answer unless one was begun."""
        if self.transport.is_closing():
            return
        if self._may_answer():
            self.transport.write(_problem(status, slug, detail))
        self.transport.close()

    def _may_answer(self) -> bool:
        """Returns whether an answer would be taken for that to the request that is awaited."""
        if self.cycle is None:
            return True
        return not self.cycle.response_started if self._awaited is _Awaited.BODY else self.cycle.response_complete

    @staticmethod
    def _stop(timer: asyncio.TimerHandle | None) -> None:
        if timer is not None:
            timer.cancel()


def bounded(settings: Settings) -> type[asyncio.Protocol]:
    """Returns what uvicorn is to make of each connection; all of them together keep to the settings."""
    return cast("type[asyncio.Protocol]", partial(BoundedConnection, Bounds.of(settings)))


def _problem(status: HTTPStatus, slug: str, detail: str) -> bytes:
    """Returns a whole answer with a problem document, as app.edge.problems would write it."""
    document = {
        "type": f"urn:casebank:problem:{slug}",
        "title": status.phrase,
        "status": int(status),
        "detail": detail,
    }
    body = json.dumps(document).encode()
    lines = [
        f"HTTP/1.1 {int(status)} {status.phrase}",
        "Content-Type: application/problem+json",
        f"Content-Length: {len(body)}",
        "Connection: close",
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body
