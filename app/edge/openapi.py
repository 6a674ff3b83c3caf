"""The service's OpenAPI document: FastAPI's own, with the errors of each operation and the type ``JsonValue`` added."""

from functools import cache
from typing import Any

from fastapi import FastAPI

from app.auth.errors import KeysUnavailable, NotAllowed, NotAuthenticated, UserNotNamed
from app.edge.dependencies import ACTING_FOR
from app.edge.intake.errors import BodyIncomplete, BodyNotJson, BodyTooComplex, BodyTooCostly, BodyTooLarge, Busy
from app.edge.problems import DOCUMENTED, INVALID, Kind, Problem, kind_of
from retrieval.errors import DatabaseUnavailable, NotFound, UserErased

JSON = {
    "description": "any JSON",
    "anyOf": [
        *({"type": name} for name in ("string", "number", "boolean", "null")),
        {"type": "array", "items": {"$ref": "#/components/schemas/JsonValue"}},
        {"type": "object", "additionalProperties": {"$ref": "#/components/schemas/JsonValue"}},
    ],
}
BEARER = {"type": "http", "scheme": "bearer", "description": "`casebank token --user NAME` prints one"}
OF_A_CALLER = (NotAuthenticated, NotAllowed, UserNotNamed, UserErased, KeysUnavailable, DatabaseUnavailable)
OF_A_BODY = (BodyIncomplete, BodyNotJson, BodyTooLarge, BodyTooComplex, BodyTooCostly, Busy)


def install(app: FastAPI) -> None:
    """Makes the app's document complete, so that clients can be generated from it."""
    plain = app.openapi

    @cache
    def openapi() -> dict[str, Any]:
        document = plain()
        document["components"]["schemas"] |= {"JsonValue": JSON, "Problem": Problem.model_json_schema()}
        document["components"]["securitySchemes"] = {"HTTPBearer": BEARER}
        for path in document["paths"].values():
            for operation in path.values():
                if "default" in operation["responses"]:
                    _complete(operation)
        return document

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's own way to extend its document


def _complete(operation: dict[str, Any]) -> None:
    """Adds the token, and the errors that follow from the form: of a token, a body, parameters, an id in the path.

    Errors that only this operation answers are in it already: its route names them (``problems.raises``). The
    description of a status lists its types of problem.
    """
    responses, parameters = operation["responses"], operation.get("parameters", [])
    kinds: list[Kind] = []
    if any(each["name"] == ACTING_FOR for each in parameters):
        operation["security"] = [{"HTTPBearer": []}]
        kinds += map(kind_of, OF_A_CALLER)
    if "requestBody" in operation:
        kinds += map(kind_of, OF_A_BODY)
    if "requestBody" in operation or parameters:
        kinds.append(INVALID)
    if any(each["in"] == "path" and each["name"].endswith("_id") for each in parameters):
        kinds.append(kind_of(NotFound))
    for kind in kinds:
        response = responses.setdefault(str(int(kind.status)), {"description": kind.slug})
        response["description"] = ", ".join(sorted({*response["description"].split(", "), kind.slug}))
    for status, response in responses.items():
        if status.startswith(("4", "5")):
            response.setdefault("content", DOCUMENTED["default"]["content"])
    operation["responses"] = dict(sorted(responses.items()))
