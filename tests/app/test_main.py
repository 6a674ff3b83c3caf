"""The app as a whole: every route is described, with examples that work."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from inspect import isasyncgenfunction, iscoroutinefunction, isfunction
from typing import Any
from uuid import uuid4

from fastapi.dependencies.models import Dependant
from fastapi.routing import iter_route_contexts

from app.edge.dependencies import admitted, runtime
from tests.app.routes.conftest import STEPS
from tests.policies import stored
from tests.service import AGENT, Service, User
from writer.rights.erase import bury, digest
from writer.training import lifecycle


def _operations(service: Service) -> list[tuple[str, dict[str, Any]]]:
    paths = service.app.openapi()["paths"]
    return [(f"{method} {path}", operation) for path, methods in paths.items() for method, operation in methods.items()]


def test_every_operation_is_described(service: Service):
    assert [name for name, operation in _operations(service) if not operation.get("description")] == []


def test_every_operation_has_a_tag_and_an_id_of_its_own_that_a_client_can_call_a_method(service: Service):
    operations = [operation for _, operation in _operations(service)]
    ids = [operation["operationId"] for operation in operations]
    assert len(set(ids)) == len(ids)
    assert [name for name in ids if not name.isidentifier()] == []
    assert all(operation["tags"] for operation in operations)


def test_no_dependency_of_a_route_runs_in_a_thread(service: Service):
    def calls(dependant: Dependant) -> Iterator[Any]:
        for each in dependant.dependencies:
            yield from (each.call, *calls(each))

    routes = [getattr(context, "dependant", None) for context in iter_route_contexts(service.app.routes)]
    used = {call for dependant in routes if dependant is not None for call in calls(dependant)}
    assert used >= {admitted, runtime}
    functions = [call if isfunction(call) else type(call).__call__ for call in used]
    assert [each for each in functions if not iscoroutinefunction(each) and not isasyncgenfunction(each)] == []


def test_every_body_has_an_example_and_refuses_unknown_fields(service: Service):
    schemas = service.app.openapi()["components"]["schemas"]
    for name, operation in _operations(service):
        if "requestBody" in operation:
            reference = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
            schema = schemas[reference.rpartition("/")[2]]
            assert schema["examples"], name
            parts = [part.get("items", part) for part in schema.get("oneOf", [schema])]  # an object, or a list of them
            closed = [schemas[part["$ref"].rpartition("/")[2]] if "$ref" in part else part for part in parts]
            assert all(part["additionalProperties"] is False for part in closed), name


async def test_the_examples_of_the_documentation_work(service: Service, alice: User):
    schemas = service.app.openapi()["components"]["schemas"]
    case_id = await alice.retain("water the garden", plan=STEPS)
    await alice.settle()
    (learned,) = await alice.rows("SELECT id FROM procedures WHERE user_sub = :user_sub")
    fact = {"agent": AGENT, "kind": "fact", "text": "the garden is large"}  # for one example to forget
    fact_id = (await alice.http.post("/v1/facts", json=fact)).json()["fact_id"]
    (entry,) = schemas["KnowledgeWritten"]["examples"]  # for itself to edit
    kept = (await alice.http.post("/v1/knowledge", json=entry)).json()["knowledge_id"]
    named = {"case_id": case_id, "procedure_id": learned.id, "agent": AGENT, "run_id": uuid4(), "session_id": "a chat"}
    named |= {"knowledge_id": kept}
    async with service.runtime.database.as_user(alice.name, datetime.now(UTC)) as connection:
        await lifecycle.add(connection, alice.name, "db-operator", stored("serving"))  # for one example to roll back
        long_ago = datetime.now(UTC) - timedelta(days=1)  # an erasure, for one example to begin again after
        await connection.execute(bury(digest(alice.name), {}).values(erased_at=long_ago))
    given = {"case_id": case_id, "erased_at": long_ago.isoformat(), "id": fact_id}
    for name, operation in _operations(service):
        if "requestBody" in operation:
            reference = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
            method, path = name.split(" ")
            wanted = {each["name"] for each in operation.get("parameters", []) if each["in"] == "query"}
            params = {"agent": AGENT} if "agent" in wanted else {}
            for example in schemas[reference.rpartition("/")[2]]["examples"]:
                body = example
                if isinstance(example, dict):
                    body = example | {field: value for field, value in given.items() if field in example}
                answer = await alice.http.request(method, path.format(**named), params=params, json=body)
                assert answer.status_code < 300, (name, answer.text)


def test_every_closed_operation_documents_its_problems_and_its_token(service: Service):
    for name, operation in _operations(service):
        if "/v1/" in name:
            assert list(operation["responses"]["default"]["content"]) == ["application/problem+json"], name
            assert operation["security"], name
