"""Routes that take a body in: who calls is known before a byte of it is read, and a large one is checked aside."""

from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.params import Depends
from fastapi.routing import APIRoute

from app.edge import dependencies as deps
from app.edge.intake.aside import Aside
from app.edge.intake.body import announced, read_body
from app.edge.intake.counts import DOCUMENTED
from app.edge.intake.errors import BodyNotJson
from app.edge.intake.reading import MadeFrom, parse, take
from app.edge.intake.room import Room
from app.settings import Settings
from retrieval.telemetry import origin

INLINE_BYTES = 4 * 1024
"""A body of no more is parsed on the event loop: the worst that was found takes .1 s there, the ordinary one .1 ms."""
UNCOUNTED_BYTES = 16 * 1024
"""A body of no more needs no room; the limit of connections bounds how many there are."""

BODIES_AT_ONCE = 4
"""Largest bodies that fit into the room at once, half of it for any one user; 16 MiB by default."""
GIVEN_UP_AFTER = 12
"""Budgets of processor time, by the clock: on a machine that is busy with other things they last longer."""


@dataclass(frozen=True, slots=True)
class Intake:
    """What stands between a socket and a route: how large a body may be, who has room, and where it is checked."""

    max_bytes: int
    room: Room
    aside: Aside

    @classmethod
    def of(cls, settings: Settings) -> "Intake":
        """Returns the intake that the settings describe; no process is started yet."""
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
        """Yields the whole body; as long as the block runs it has its room.

        Raises:
            BodyTooLarge, BodyIncomplete, Busy: it was not read, or not to its end.
        """
        size = announced(request.headers.get("content-length"), self.max_bytes)
        if size <= UNCOUNTED_BYTES:
            yield await read_body(request.receive, size)
            return
        async with self.room.held(user_sub, size):
            yield await read_body(request.receive, size)


class _Whole(Request):
    """A request whose body was read, and perhaps parsed and validated already."""

    def __init__(self, request: Request, body: bytes) -> None:
        super().__init__(request.scope, request.receive)
        self._body = body

    def taken_as(self, value: object) -> None:
        """Makes FastAPI find this where it looks for the parsed JSON; a model's own instance is not validated again."""
        self._json = value


class BodyRoute(APIRoute):
    """A route that knows who calls before it reads, and reads within bounds.

    Raises:
        TypeError: a route would take a body from nobody knows whom, or one that no other process could validate.
    """

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        if self.made_from is not None:
            self.responses = {**self.responses, 413: _too_much(self.responses)}

    @property
    def made_from(self) -> MadeFrom | None:
        """Returns the body's model and what prepares it for the route; None: the route takes no body."""
        if self.body_field is None:
            return None
        field = self.body_field.field_info
        marks = [mark for mark in field.metadata if isinstance(mark, MadeFrom)]
        if marks:
            return marks[0]
        if not isinstance(field.annotation, type):
            raise TypeError(f"the body of {self.path} is no class, so that no other process could validate it")
        return MadeFrom(field.annotation)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Returns what answers a request: the route's own handler, behind what it asks for."""
        handle, made_from = super().get_route_handler(), self.made_from
        if made_from is None:
            return handle
        if not _asks_who_calls(self.dependant):
            raise TypeError(f"{self.path} takes a body and does not ask who calls")

        async def bounded(request: Request) -> Response:
            user_sub = (await deps.identify(request)).user_sub
            intake: Intake = request.app.state.intake
            async with intake.body(request, user_sub) as body:
                return await handle(await _checked(intake.aside, user_sub, made_from, _Whole(request, body)))

        return bounded


def include(app: FastAPI, router: APIRouter, dependencies: Sequence[Depends] = ()) -> None:
    """Adds the routes to the app, each with the dependencies.

    Raises:
        TypeError: one of them is not a ``BodyRoute``, which bounds what is read.
    """
    intake: Intake = app.state.intake
    for route in router.routes:
        if not isinstance(route, BodyRoute):
            raise TypeError(f"not of the class BodyRoute: {route}")
        if route.made_from is not None:
            intake.aside.modules |= route.made_from.modules
    app.include_router(router, dependencies=list(dependencies))


async def _checked(aside: Aside, user_sub: str, made_from: MadeFrom, request: _Whole) -> _Whole:
    """Returns the request, its body within the limits of counts and parsed; a large one validated and prepared as well.

    Raises:
        RequestValidationError: it is no JSON, or the large one is not what the route takes.
        BodyNotJson: it does not say that it is JSON.
        BodyTooComplex, BodyTooCostly, Busy: see ``take`` and ``Aside``.
    """
    body = await request.body()
    if body and not _says_json(request.headers.get("content-type", "")):
        raise BodyNotJson("send the body as JSON, with the header Content-Type: application/json")
    if body:
        large = len(body) > INLINE_BYTES
        work = take, made_from.model, body, origin(), made_from.prepare
        taken = await aside.run(user_sub, *work) if large else parse(body)
        if taken.faults:
            raise RequestValidationError(taken.faults)
        request.taken_as(taken.value)
    return request


def _says_json(content_type: str) -> bool:
    """Returns whether the body says that it is JSON, as far as FastAPI would believe it."""
    group, _, name = content_type.partition(";")[0].strip().lower().partition("/")
    return group == "application" and (name == "json" or name.endswith("+json"))


def _asks_who_calls(dependant: Dependant) -> bool:
    return dependant.call is deps.author or any(map(_asks_who_calls, dependant.dependencies))


def _too_much(responses: dict[int | str, dict[str, Any]]) -> dict[str, Any]:
    return {
        **responses.get("default", {}),
        **responses.get(413, {}),  # what the route itself says
        "description": f"The body has more bytes than the service takes, or holds more than {DOCUMENTED}, or takes too"
        " long to check and redact; a problem document says which",
    }
