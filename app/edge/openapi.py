"""The service's OpenAPI document: FastAPI's own, with the token, the problems, ``JsonValue`` and examples added."""

import json
from functools import cache
from importlib.resources import files
from typing import Any

from fastapi import FastAPI

from app.edge.dependencies import ACTING_FOR
from app.edge.problems import KINDS, Problem

JSON = {
    "description": "any JSON",
    "anyOf": [
        *({"type": name} for name in ("string", "number", "boolean", "null")),
        {"type": "array", "items": {"$ref": "#/components/schemas/JsonValue"}},
        {"type": "object", "additionalProperties": {"$ref": "#/components/schemas/JsonValue"}},
    ],
}
BEARER = {"type": "http", "scheme": "bearer", "description": "`casebank token --user NAME` prints one"}


def install(app: FastAPI) -> None:
    """Makes the app's document complete, so that clients can be generated from it."""
    plain = app.openapi

    @cache
    def openapi() -> dict[str, Any]:
        document, problem = plain(), Problem.model_json_schema()
        types = ", ".join(sorted({kind.slug for kind in KINDS.values()}))
        problem["properties"]["type"]["description"] = f"`urn:casebank:problem:` and, for one, {types}"
        schemas = document["components"]["schemas"]
        schemas |= {"JsonValue": JSON, "Problem": problem}
        for name, examples in json.loads(files("app.edge").joinpath("examples.json").read_text("utf-8")).items():
            schemas[name]["examples"] = examples
        document["components"]["securitySchemes"] = {"HTTPBearer": BEARER}
        for path in document["paths"].values():
            for operation in path.values():
                if any(each["name"] == ACTING_FOR for each in operation.get("parameters", [])):
                    operation["security"] = [{"HTTPBearer": []}]
        return document

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's own way to extend its document
