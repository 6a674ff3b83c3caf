"""The client's answers are those of the service's OpenAPI document: neither moves without the other."""

import os
import types
import typing
from pathlib import Path
from typing import Any, Literal, NotRequired

import pytest
from casebank_client import answers

from app.main import create_app
from app.settings import Settings

SAME = {
    "Slot": "SlotOut",
    "ProcedureTold": "ToldProcedureOut",
    "Other": "OtherOut",
    "Threshold": "ThresholdOut",
    "Part": "PartOut",
    "Source": "SourceOut",
    "MemoryFound": "RecalledMemoryOut",
    "SessionFound": "SessionFoundOut",
    "Recalled": "RecallOut",
    "Retrieved": "RetrieveOut",
    "Redaction": "RedactionOut",
    "Retained": "RetainOut",
    "Feedback": "FeedbackOut",
    "Fix": "AdvisedFixOut",
    "AdvisedPlan": "AdvisedPlanOut",
    "Advice": "AdviceOut",
    "TurnsAdded": "TurnsAppendedOut",
    "Turn": "TurnOut",
    "SummaryItem": "SummaryItemOut",
    "Session": "WholeSessionOut",
    "Fact": "FactOut",
    "Facts": "FactsOut",
    "Knowledge": "KnowledgeOut",
    "KnowledgePage": "KnowledgePageOut",
    "Case": "CaseOut",
    "WholeCase": "WholeCaseOut",
    "Cases": "CasesOut",
}
PLAIN = {str: "string", int: "integer", bool: "boolean", float: "number", types.NoneType: "null", Any: "anything"}


@pytest.fixture(scope="module")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    secrets = {"jwt_secret": os.urandom(32).hex(), "master_key": os.urandom(32).hex()}
    home = Path(tmp_path_factory.mktemp("home"))
    return create_app(Settings(home=home, database_url="postgresql://x/y", **secrets)).openapi()["components"][
        "schemas"
    ]


def form(wanted: Any) -> Any:
    """What a type of the client is in OpenAPI: the set of the types that it may have."""
    origin, inner = typing.get_origin(wanted), typing.get_args(wanted)
    if origin is NotRequired:
        return form(inner[0])
    if origin is Literal:
        return {"string"}
    if origin in {typing.Union, types.UnionType}:
        return set().union(*(form(each) for each in inner))
    if origin is list:
        (of,) = form(inner[0])
        return {f"list of {of}"}
    if origin is dict:
        return {"object"}
    return {SAME[wanted.__name__] if typing.is_typeddict(wanted) else PLAIN[wanted]}


def form_in_openapi(field: dict[str, Any]) -> set[str]:
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return {"anything" if name == "JsonValue" else name}
    if "anyOf" in field:
        return set().union(*(form_in_openapi(each) for each in field["anyOf"]))
    if "type" not in field:
        return {"anything"}
    if field["type"] == "array":
        (of,) = form_in_openapi(field["items"])
        return {f"list of {of}"}
    return {field["type"]}


def choices(wanted: Any) -> list[str]:
    found = list(typing.get_args(wanted)) if typing.get_origin(wanted) is Literal else []
    return found or [each for part in typing.get_args(wanted) for each in choices(part)]


@pytest.mark.parametrize("name", SAME)
def test_an_answer_of_the_client_is_the_services(name: str, schemas: dict[str, Any]):
    ours, theirs = getattr(answers, name), schemas[SAME[name]]
    hints = typing.get_type_hints(ours)
    assert set(hints) == set(theirs["properties"])
    assert ours.__required_keys__ == frozenset(theirs.get("required", ()))
    for field, wanted in hints.items():
        assert form(wanted) == form_in_openapi(theirs["properties"][field]), field
        if listed := choices(wanted):
            given = theirs["properties"][field]
            assert listed == [each for part in (given, *given.get("anyOf", ())) for each in part.get("enum", ())], field
