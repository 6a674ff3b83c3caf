"""Bounds on connections: their number, in all and from one address, and the time for each part of a request.

uvicorn alone closes an idle connection, but waits without end for a head or a body that does not arrive.
"""

import asyncio
import json
from collections import Counter
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial
from http import HTTPStatus
from typing import Any, cast

from httptools import HttpParserInvalidMethodError, HttpParserUpgrade, HttpRequestParser
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app.settings import Settings

MAX_HEAD_BYTES = 64 * 1024
"""Most bytes of the first line and the headers, and of whatever else is no body; the parser has no limit."""


class _Awaited(Enum):
    """The part of a request that is to come."""

    NOTHING = auto()
    HEAD = auto()
    BODY = auto()


@dataclass(slots=True)
class ConnectionBounds:
    """Bounds for all connections of a server, and the open connections by address."""

    connections: int
    connections_per_address: int
    headers_timeout_s: float
    body_timeout_s: float
    open_from: Counter[str] = field(default_factory=Counter)

    def opened(self, address: str) -> bool:
        """Counts a connection, and returns whether the bounds allow it."""
        self.open_from[address] += 1
        return self.open_from[address] <= self.connections_per_address and self.open_from.total() <= self.connections

    def closed(self, address: str) -> None:
        """Removes a closed connection from the counts."""
        self.open_from[address] -= 1
        if not self.open_from[address]:
            del self.open_from[address]


class _Parser(HttpRequestParser):
    """A parser that reads on as HTTP/1.1 where a request asks for another protocol; httptools would drop its body.

    Java's client asks for HTTP/2 in its first request, and a server may ignore that (RFC 9110, section 7.8).
    """

    def __init__(self, connection: "BoundedConnection") -> None:
        super().__init__(connection)
        self._connection = connection
        self.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does

    def feed_data(self, data: bytes) -> None:  # type: ignore[override]  # uvicorn gives bytes
        """Parses the data."""
        parser = self
        while True:
            try:
                HttpRequestParser.feed_data(parser, data)
            except HttpParserUpgrade as asked:
                head = self._connection.head_without_upgrade()
                parser = self._connection.parser = _Parser(self._connection)
                data = head + data[asked.args[0] :]
            else:
                return


class BoundedConnection(HttpToolsProtocol):
    """A client's connection, which is closed when a request takes too long or its head is too large."""

    def __init__(self, bounds: ConnectionBounds, **given_by_uvicorn: Any) -> None:
        super().__init__(**given_by_uvicorn)
        self.parser = _Parser(self)
        self._bounds = bounds
        self._address = ""
        self._admitted = False
        self._awaited = _Awaited.HEAD
        self._requests = 0
        self._timed: tuple[int, _Awaited] | None = None
        self._reading_timer: asyncio.TimerHandle | None = None
        self._writing_timer: asyncio.TimerHandle | None = None
        self._head_bytes = 0
        self._has_body = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's own
        """Admits the connection, or refuses it with an answer if there are too many."""
        super().connection_made(transport)
        self._address = self.client[0] if self.client else ""
        self._admitted = self._bounds.opened(self._address)
        if self._admitted:
            self._set_timer()
        else:
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, "too-many-connections", "there are too many connections")

    def connection_lost(self, exc: Exception | None) -> None:
        """Removes the connection from the counts, and stops its timers."""
        self._bounds.closed(self._address)
        self._stop(self._reading_timer)
        self._stop(self._writing_timer)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Reads the data, and sets the timer for the rest of the request."""
        if not self._admitted or self.transport.is_closing():
            return
        before, self._has_body = (self._requests, self._awaited), False
        super().data_received(data)
        if before == (self._requests, _Awaited.NOTHING):
            self._awaited = _Awaited.HEAD  # the parser does not take the data for a request yet
        self._set_timer()
        if self._awaited is _Awaited.NOTHING or self._has_body:
            self._head_bytes = 0
        else:  # of a head, or of trailers, which come after the last piece of a body
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES:
                self._refuse_head()

    def eof_received(self) -> bool:  # type: ignore[override]  # uvicorn's own closes the connection in any case
        """Keeps the connection of a client that ended its side after whole requests until it has their answers."""
        if self._awaited is not _Awaited.NOTHING or self.cycle is None or self.cycle.response_complete:
            return False
        self.cycle.keep_alive = False
        return True

    def on_message_begin(self) -> None:
        """Notes that a request begins."""
        super().on_message_begin()
        self._requests += 1
        self._awaited, self._head_bytes = _Awaited.HEAD, 0

    def on_header(self, name: bytes, value: bytes) -> None:
        """Adds a header, but no trailer: it could name another user than the headers, which a proxy checks."""
        if self._awaited is not _Awaited.BODY:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Notes that the body is to come, and refuses a CONNECT, behind which nothing is HTTP."""
        if self.parser.get_method() == b"CONNECT":
            raise HttpParserInvalidMethodError
        if not self.parser.should_upgrade():
            self._awaited, self._head_bytes = _Awaited.BODY, 0
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Notes that a piece of the body came."""
        self._has_body = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Notes that the request is whole."""
        if not self.parser.should_upgrade():
            self._awaited = _Awaited.NOTHING
            super().on_message_complete()

    def head_without_upgrade(self) -> bytes:
        """Returns the head of a request that asks for another protocol, without the header that asks for it."""
        first = b"%s %s HTTP/%s" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())
        headers = [b"%s: %s" % header for header in self.headers if header[0] != b"upgrade"]
        return b"\r\n".join([first, *headers, b"", b""])

    def send_400_response(self, _msg: str) -> None:
        """Refuses what the parser does not take for a request, as it does not with an address that is too long."""
        if len(self.url) >= MAX_HEAD_BYTES - 1:
            self._refuse_head()
        else:
            self._refuse(HTTPStatus.BAD_REQUEST, "not-http", "the request is not valid HTTP/1.1")

    def pause_writing(self) -> None:
        """Starts a timer that closes the connection unless the client reads on within the body's timeout."""
        super().pause_writing()
        self._writing_timer = self.loop.call_later(self._bounds.body_timeout_s, self.transport.abort)

    def resume_writing(self) -> None:
        """Stops the timer of ``pause_writing``: the client reads its answer again."""
        super().resume_writing()
        self._stop(self._writing_timer)

    def _set_timer(self) -> None:
        """Starts the timer of the awaited part, unless it runs: more bytes of the same part give no more time."""
        awaited = self._requests, self._awaited
        if awaited == self._timed:
            return
        self._stop(self._reading_timer)
        self._timed = awaited
        if self._awaited is not _Awaited.NOTHING:
            bounds = self._bounds
            longest = bounds.headers_timeout_s if self._awaited is _Awaited.HEAD else bounds.body_timeout_s
            refusal = HTTPStatus.REQUEST_TIMEOUT, "too-slow", "the request took too long to arrive"
            self._reading_timer = self.loop.call_later(longest, self._refuse, *refusal)

    def _refuse_head(self) -> None:
        status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
        self._refuse(status, "headers-too-large", f"address and headers may have at most {MAX_HEAD_BYTES} bytes")

    def _refuse(self, status: HTTPStatus, slug: str, detail: str) -> None:
        """Closes the connection, with an answer unless the client would take it for the answer to another request."""
        if self.transport.is_closing():
            return
        if self.cycle is None:
            answers = True
        else:
            is_body = self._awaited is _Awaited.BODY
            is_next = not self.pipeline  # else the request waits for the answers to those before it
            answers = is_next and not self.cycle.response_started if is_body else self.cycle.response_complete
        if answers:  # with a problem document, in the form of app.edge.problems
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
            self.transport.write("\r\n".join([*lines, "", ""]).encode() + body)
        self.transport.close()

    @staticmethod
    def _stop(timer: asyncio.TimerHandle | None) -> None:
        if timer is not None:
            timer.cancel()


def bounded(settings: Settings) -> type[asyncio.Protocol]:
    """Returns the class of connections for uvicorn; all connections together keep to the bounds of the settings."""
    connections, timeouts_s = settings.connections, settings.timeouts_s
    per_address = connections.per_address or connections.total
    bounds = ConnectionBounds(connections.total, per_address, timeouts_s.headers, timeouts_s.body)
    return cast("type[asyncio.Protocol]", partial(BoundedConnection, bounds))
