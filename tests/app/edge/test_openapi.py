"""The OpenAPI document is worth generating a client from: a type for every field and for every error."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.service import Service

JSON = "JsonValue"


def document(service: Service) -> dict[str, Any]:
    return service.app.openapi()


def operations(service: Service) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in document(service)["paths"].items():
        for method, operation in methods.items():
            yield f"{method} {path}", operation


def vague(schema: dict[str, Any], where: str) -> Iterator[str]:
    """Yields where a schema lets through what it does not describe."""
    told = {"type", "anyOf", "oneOf", "allOf", "$ref", "enum", "const"} & set(schema)
    if not told or schema.get("additionalProperties") is True:
        yield where
    if schema.get("type") == "object" and not {"properties", "additionalProperties"} & set(schema):
        yield where
    for name, inner in schema.get("properties", {}).items():
        yield from vague(inner, f"{where}.{name}")
    for many in ("anyOf", "oneOf", "allOf"):
        for inner in schema.get(many, []):
            yield from vague(inner, where)
    for one in ("items", "additionalProperties"):
        if isinstance(schema.get(one), dict):
            yield from vague(schema[one], f"{where}[]")


def test_no_field_takes_or_answers_what_the_document_does_not_describe(service: Service):
    found = [
        each for name, schema in document(service)["components"]["schemas"].items() for each in vague(schema, name)
    ]
    for name, operation in operations(service):
        for each in operation.get("parameters", []):
            found += vague(each["schema"], f"{name} {each['name']}")
        for status, told in operation["responses"].items():
            for media in told.get("content", {}).values():
                found += vague(media["schema"], f"{name} {status}")
    assert found == []


def test_any_json_is_a_type_by_name(service: Service):
    schema = document(service)["components"]["schemas"][JSON]
    kinds = {each["type"] for each in schema["anyOf"]}
    assert kinds == {"string", "number", "boolean", "null", "array", "object"}


def test_every_error_of_an_operation_is_a_problem_by_name_with_its_types(service: Service):
    for name, operation in operations(service):
        if "/v1/" in name:
            (media,) = operation["responses"]["default"]["content"].items()
            assert media == ("application/problem+json", {"schema": {"$ref": "#/components/schemas/Problem"}}), name
            assert operation["security"] == [{"HTTPBearer": []}], name
    types = document(service)["components"]["schemas"]["Problem"]["properties"]["type"]["description"]
    assert {"memory-off,", "rate-exceeded,", "turns-out-of-order,"} < set(types.split())


async def test_the_page_of_the_api_asks_nobody_but_this_service(service: Service):
    anybody = await service.http(None)
    page = (await anybody.get("/docs")).text
    wanted = re.findall(r"""(?:src|href)=["']([^"']+)["']""", page)
    assert len(wanted) >= 3
    assert "://" not in page
    for each in wanted:
        answer = await anybody.get(each)
        assert (answer.status_code, len(answer.content) > 1000) == (200, True), each
    assert '"validatorUrl": null' in page


@pytest.mark.parametrize("path", ["/redoc", "/static-offline-docs/../main.py", "/static-offline-docs/%2e%2e/core.py"])
async def test_there_is_no_page_that_asks_others_and_no_way_out_of_the_folder(service: Service, path: str):
    assert (await (await service.http(None)).get(path)).status_code == 404
