"""The service's OpenAPI document: FastAPI's, with each error that an operation may answer, and JSON as a type."""

from collections.abc import Iterator
from functools import cache
from typing import Any

from fastapi import FastAPI

from app.auth.tokens import KeysUnavailable, NotAllowed, NotAuthenticated, UserNotNamed
from app.edge.intake.errors import BodyIncomplete, BodyNotJson, BodyTooComplex, BodyTooCostly, BodyTooLarge, Busy
from app.edge.problems import DOCUMENTED, INVALID, PROBLEMS, Kind, Problem, kind_of_type
from retrieval.errors import DatabaseUnavailable, NotFound, UserErased

JSON = {
    "description": "any JSON",
    "anyOf": [
        *({"type": name} for name in ("string", "number", "boolean", "null")),
        {"type": "array", "items": {"$ref": "#/components/schemas/JsonValue"}},
        {"type": "object", "additionalProperties": {"$ref": "#/components/schemas/JsonValue"}},
    ],
}
OF_A_CALLER = (NotAuthenticated, NotAllowed, UserNotNamed, UserErased, KeysUnavailable, DatabaseUnavailable)
OF_A_BODY = (BodyIncomplete, BodyNotJson, BodyTooLarge, BodyTooComplex, BodyTooCostly, Busy)


def install(app: FastAPI) -> None:
    """Makes the app tell the whole document, which a client can be generated from."""
    plain = app.openapi

    @cache
    def openapi() -> dict[str, Any]:
        document = plain()
        _complete(document)
        return document

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's own way to extend its document


def _complete(document: dict[str, Any]) -> None:
    """Adds the errors and the type of JSON, in place."""
    schemas = document["components"]["schemas"]
    schemas |= {"JsonValue": JSON, "Problem": Problem.model_json_schema()}
    for path in document["paths"].values():
        for operation in path.values():
            if "default" in operation["responses"]:
                _add_errors(operation)


def _add_errors(operation: dict[str, Any]) -> None:
    responses = operation["responses"]
    for kind in _errors_of(operation):
        told = responses.setdefault(str(int(kind.status)), {})
        told[PROBLEMS] = sorted({*told.get(PROBLEMS, ()), kind.slug})
    for told in responses.values():
        if PROBLEMS in told:
            told.setdefault("content", DOCUMENTED["default"]["content"])
            told["description"] = told.get("description") or ", ".join(told[PROBLEMS])
    operation["responses"] = dict(sorted(responses.items()))


def _errors_of(operation: dict[str, Any]) -> Iterator[Kind]:
    """Yields what any operation of its form may answer; what is its own stands with its route (``problems.raises``)."""
    parameters = operation.get("parameters", [])
    if "security" in operation:
        yield from map(kind_of_type, OF_A_CALLER)
    if "requestBody" in operation:
        yield from map(kind_of_type, OF_A_BODY)
    if "requestBody" in operation or parameters:
        yield INVALID
    if any(each["in"] == "path" and each["name"].endswith("_id") for each in parameters):
        yield kind_of_type(NotFound)
