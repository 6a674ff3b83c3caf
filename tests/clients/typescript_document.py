"""The part of the service's OpenAPI document that the TypeScript client's types are made of.

``python -m tests.clients.typescript_document`` prints it; `make client-types` keeps it beside the client,
and makes the types.
"""

import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from app.main import create_app
from app.settings import Settings

PATHS = (
    "/v1/retrieve",
    "/v1/advice",
    "/v1/retain",
    "/v1/feedback",
    "/v1/sessions/{session_id}",
    "/v1/sessions/{session_id}/turns",
    "/v1/recall",
    "/v1/facts",
    "/v1/facts/{fact_id}",
    "/v1/knowledge",
    "/v1/knowledge/{knowledge_id}",
    "/v1/cases",
    "/v1/cases/{case_id}",
    "/v1/runs/{run_id}/steps",
    "/v1/runs/{run_id}/findings",
    "/v1/runs/{run_id}/known",
    "/v1/runs/{run_id}/summary",
)
UNUSED = frozenset({"put", "patch"})
"""Methods that the client does not call."""
ANY_JSON = {"description": "any JSON"}
"""``unknown`` in TypeScript, for whatever serialises is sent; it has no recursive type at that place (TS2502)."""
REFERENCE = re.compile(r'"#/components/schemas/([^"]+)"')


def document() -> dict[str, Any]:
    """Returns the document with the paths that the client calls, and with the schemas that these refer to."""
    secrets = {"jwt_secret": os.urandom(32).hex(), "master_key": os.urandom(32).hex()}
    with tempfile.TemporaryDirectory() as home:
        settings = Settings(home=Path(home), database_url="postgresql://x/y", **secrets)
        whole = create_app(settings).openapi()
    paths = {path: _answers(whole["paths"][path]) for path in PATHS}
    schemas = {**whole["components"]["schemas"], "JsonValue": ANY_JSON}
    return {
        "openapi": whole["openapi"],
        "info": {"title": "casebank", "version": "1"},
        "paths": paths,
        "components": {"schemas": {name: schemas[name] for name in sorted(_referred(paths, schemas))}},
    }


def _answers(methods: dict[str, Any]) -> dict[str, Any]:
    """Returns the methods of a path without the problems that they answer: the client reads those untyped."""
    return {
        method: operation | {"responses": {code: it for code, it in operation["responses"].items() if code < "300"}}
        for method, operation in methods.items()
        if method not in UNUSED
    }


def _referred(paths: dict[str, Any], schemas: dict[str, Any]) -> set[str]:
    """Returns the names of the schemas that the paths refer to, those that schemas refer to included."""
    found: set[str] = set()
    new = set(REFERENCE.findall(json.dumps(paths)))
    while new:
        found |= new
        new = set(REFERENCE.findall(json.dumps([schemas[name] for name in new]))) - found
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(document(), indent=1) + "\n")
