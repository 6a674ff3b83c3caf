"""Routes with a body: the caller is known before a byte is read, and a large body is checked in a side process."""

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute

from app.edge import dependencies as deps
from app.edge.intake.aside import Aside
from app.edge.intake.body import announced, read_body, read_on
from app.edge.intake.errors import BodyNotJson
from app.edge.intake.faults import with_fields
from app.edge.intake.reading import MadeFrom, parse, take
from app.edge.intake.room import Room
from app.settings import Settings
from retrieval.telemetry import origin

INLINE_BYTES = 4 * 1024
"""Bytes up to which a body is parsed on the event loop: the worst one known takes 0.1 s there, a usual one 0.1 ms."""
UNCOUNTED_BYTES = 16 * 1024
"""Bytes that a body may have without room, and may have read before it takes room where its length is not announced."""

BODIES_AT_ONCE = 4
"""Largest bodies that fit into the room at once, half of it for any one user; 16 MiB by default."""
GIVEN_UP_AFTER = 12
"""Longest time of a check by the clock, as a multiple of its budget of processor time: the machine may be busy."""


@dataclass(frozen=True, slots=True)
class Intake:
    """Limits on bodies before a route runs: size of one, bytes of all large ones, processes that check large ones."""

    max_bytes: int
    room: Room
    aside: Aside

    @classmethod
    def of(cls, settings: Settings) -> "Intake":
        """Returns the intake of these settings; no process is started yet."""
        timeouts = settings.timeouts_s
        return cls(
            settings.max_body_bytes,
            Room(BODIES_AT_ONCE * settings.max_body_bytes, timeouts.body / 3),  # and time to arrive then
            Aside(
                settings.body_processes,
                timeouts.body_check,
                given_up_after_s=GIVEN_UP_AFTER * timeouts.body_check,
                patience_s=timeouts.body,
            ),
        )

    @asynccontextmanager
    async def body(self, request: Request, user_sub: str) -> AsyncIterator[bytes]:
        """Yields the whole body; a large one holds its share of the process's memory for the time of the block.

        Raises:
            BodyTooLarge, BodyIncomplete, Busy: the body was not read to its end.
        """
        length, begun = request.headers.get("content-length"), bytearray()
        size = announced(length, self.max_bytes)
        if size <= UNCOUNTED_BYTES:
            yield await read_body(request.receive, size)
        elif length is None and await read_on(request.receive, UNCOUNTED_BYTES, begun) and len(begun) <= size:
            yield bytes(begun)
        else:
            async with self.room.held(user_sub, size) as arrival:
                async with arrival:
                    body = await read_body(request.receive, size, begun)
                yield body


class _Whole(Request):
    """A request whose body is read, and may be parsed and validated already."""

    def __init__(self, request: Request, body: bytes) -> None:
        super().__init__(request.scope, request.receive)
        self._body = body

    def set_value(self, value: object) -> None:
        """Sets the parsed JSON where FastAPI looks for it; an instance of the model is not validated again."""
        self._json = value


class BodyRoute(APIRoute):
    """A route that identifies the caller before it reads the body, and reads within bounds.

    Raises:
        TypeError: the route takes a body without identifying the caller, or one that no side process can validate.
    """

    @property
    def made_from(self) -> MadeFrom | None:
        """Returns the body's model and the function that prepares it for the route; None: the route has no body."""
        if self.body_field is None:
            return None
        field = self.body_field.field_info
        marks = [mark for mark in field.metadata if isinstance(mark, MadeFrom)]
        if marks:
            return marks[0]
        if not isinstance(field.annotation, type):
            raise TypeError(f"the body of {self.path} is no class, so that no side process can validate it")
        return MadeFrom(field.annotation)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Returns the route's handler, behind the checks of caller and body."""
        handle, made_from = super().get_route_handler(), self.made_from
        if made_from is None:
            return handle
        if not _identifies_caller(self.dependant):
            raise TypeError(f"{self.path} takes a body and does not identify the caller")

        async def bounded(request: Request) -> Response:
            user_sub = (await deps.identify(request)).user_sub
            intake: Intake = request.app.state.intake
            async with intake.body(request, user_sub) as body:
                whole = _Whole(request, body)
                try:
                    if body:
                        whole.set_value(await _parsed(intake.aside, user_sub, made_from, whole))
                    return await handle(whole)
                except RequestValidationError as error:
                    raise RequestValidationError(with_fields(error.errors(), made_from.model)) from None

        return bounded


def include(app: FastAPI, router: APIRouter) -> None:
    """Adds the routes to the app as they are.

    FastAPI's own ``include_router`` would make each again at the app's first request, which takes 0.2 s for all, and
    match requests more slowly.

    Raises:
        TypeError: a route is not a ``BodyRoute``, which bounds the reading.
    """
    for route in router.routes:
        if not isinstance(route, BodyRoute):
            raise TypeError(f"not of the class BodyRoute: {route}")
    app.router.routes.extend(router.routes)


async def _parsed(aside: Aside, user_sub: str, made_from: MadeFrom, request: Request) -> object:
    """Returns the parsed body; a large one is parsed, validated and prepared for the route in a side process.

    Raises:
        RequestValidationError: the body is not JSON, or a large one does not fit the route.
        BodyNotJson: the Content-Type is not JSON's, as FastAPI judges it, or the body is compressed.
        BodyTooComplex, BodyTooCostly, Busy: see ``take`` and ``Aside``.
    """
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    group, _, name = content_type.partition("/")
    if group != "application" or not (name == "json" or name.endswith("+json")):
        raise BodyNotJson("send the body as JSON, with the header Content-Type: application/json")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise BodyNotJson("send the body as it is, without compression and without the header Content-Encoding")
    body = await request.body()
    large = len(body) > INLINE_BYTES
    work = take, made_from.model, body, origin(), made_from.prepare
    taken = await aside.run(user_sub, *work) if large else parse(body)
    if taken.faults:
        raise RequestValidationError(taken.faults)
    return taken.value


def _identifies_caller(dependant: Dependant) -> bool:
    return dependant.call is deps.admitted or any(map(_identifies_caller, dependant.dependencies))
