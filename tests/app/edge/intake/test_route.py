"""Routes that take a body: none reads from somebody unknown, and all say what is too much."""

import re
import subprocess
import sys
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Annotated, Any
from uuid import uuid4

import pytest
from fastapi import APIRouter, Body
from starlette.types import Message

import app.console.routes
import app.routes
from app.edge.dependencies import Caller
from app.edge.intake.route import INLINE_BYTES, BodyRoute, include
from app.schemas.bank import AgentIn
from tests.paths import ROOT
from tests.service import Service, User


def with_body(service: Service) -> list[tuple[str, str]]:
    """The method and path of each operation that takes a body, its parameters filled in."""
    return [
        (method.upper(), re.sub(r"\{\w+\}", str(uuid4()), path))
        for path, methods in service.app.openapi()["paths"].items()
        for method, operation in methods.items()
        if "requestBody" in operation
    ]


async def call(
    service: Service, method: str, path: str, *headers: tuple[bytes, bytes], announced: bytes = b"3900000"
) -> int:
    """The status of the answer to a request whose body is never to be read."""
    statuses: list[int] = []

    async def read() -> Message:
        raise AssertionError("the body was read")

    async def answer(message: Message) -> None:
        statuses.extend([message["status"]] if "status" in message else [])

    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "http",
        "root_path": "",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "client": ("x", 1),
        "headers": [(b"content-type", b"application/json"), (b"content-length", announced), *headers],
        "server": ("casebank", 80),
    }
    await service.app(scope, read, answer)
    return statuses[0]


async def test_no_body_of_somebody_unknown_is_read(service: Service):
    operations = with_body(service)
    assert len(operations) >= 10
    forged = b"authorization", b"Bearer " + service.token("alice", audience="elsewhere").encode()
    for method, path in operations:
        assert await call(service, method, path) == 401, path
        assert await call(service, method, path, forged) == 401, path


async def test_a_body_that_nobody_asked_for_is_not_read(service: Service):
    bearer = b"authorization", b"Bearer " + service.token("alice").encode()
    assert await call(service, "GET", "/healthz") == 200
    assert await call(service, "POST", "/nowhere", bearer) == 404
    assert await call(service, "DELETE", "/v1/retain", bearer) == 405


async def test_a_body_that_announces_too_many_bytes_is_not_read(service: Service):
    bearer = b"authorization", b"Bearer " + service.token("alice").encode()
    for method, path in with_body(service):
        assert await call(service, method, path, bearer, announced=b"9" * 30) == 413, path


async def test_what_is_no_json_is_told_with_the_place_and_the_reason(alice: User):
    headers = {"Content-Type": "application/json"}
    answer = await alice.http.post("/v1/retrieve", content=b"{\n'agent': 'a'}", headers=headers)
    why = "not JSON at line 2, column 1: Expecting property name enclosed in double quotes"
    assert (answer.status_code, answer.json()["errors"]) == (422, [{"field": "body", "message": why}])


@pytest.mark.parametrize("filler", ["", "x" * INLINE_BYTES], ids=["small", "large"])
async def test_an_unknown_field_is_told_with_the_fields_that_there_are(alice: User, filler: str):
    trace = {"name": "sql", "input": filler}
    body = {"agent": "a", "task": "t", "tool_traces": [trace], "filters": {}}
    answer = await alice.http.post("/v1/retain", json=body)
    told = {each["field"]: each["message"] for each in answer.json()["errors"]}
    assert told["body.tool_traces.0.name"] == ("unknown field; the object has duration_ms, input, output, status, tool")
    assert told["body.filters"].startswith("unknown field; the object has agent, ")
    assert told["body.filters"].endswith(", turns, used_case_ids, used_procedure_ids")


def test_a_route_of_another_class_is_not_included(service: Service):
    router = APIRouter()

    @router.post("/any")
    async def take(body: AgentIn, caller: Caller) -> None:
        """Takes what it gets."""

    with pytest.raises(TypeError, match="BodyRoute"):
        include(service.app, router)


@pytest.mark.parametrize("package", [app.routes, app.console.routes], ids=lambda package: package.__name__)
def test_the_services_of_a_process_share_their_routes_which_take_long_to_make(service: Service, package: ModuleType):
    modules = [import_module(f"{package.__name__}.{found.name}") for found in iter_modules(package.__path__)]
    routes = [route for module in modules for route in vars(module).get("router", APIRouter()).routes]
    assert len(routes) > 10
    assert all(route in service.app.routes for route in routes)


def test_a_route_that_takes_a_body_without_asking_who_calls_is_not_made():
    router = APIRouter(route_class=BodyRoute)

    async def take(body: AgentIn) -> None:
        """Takes what it gets."""

    with pytest.raises(TypeError, match="does not identify the caller"):
        router.post("/any")(take)


def test_a_body_that_no_other_process_could_validate_is_not_made():
    router = APIRouter(route_class=BodyRoute)

    async def take(caller: Caller, body: Annotated[dict[str, int] | None, Body()] = None) -> None:
        """Takes what it gets."""

    with pytest.raises(TypeError, match="no class"):
        router.post("/any")(take)


def test_no_body_brings_the_service_into_the_process_that_checks_it():
    """To import the service takes two seconds and 140 MB, which the first large body would wait for."""
    rooms = [import_module(f"app.routes.{each.name}") for each in iter_modules(app.routes.__path__)]
    of_rooms = [route for room in rooms for route in room.router.routes]
    checked = [route.made_from for route in of_rooms if isinstance(route, BodyRoute) and route.made_from]
    modules = sorted({part.__module__ for each in checked for part in (each.model, each.prepare) if part})
    program = f"import sys, {', '.join(modules)}; print('fastapi' in sys.modules, 'app.runtime' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert len(modules) > 10
    assert done.stdout.split() == ["False", "False"]
