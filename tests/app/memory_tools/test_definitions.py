"""What a model is told of the tools: little, the same in both formats, and in the forms that its libraries take."""

import json
import re
from typing import get_args

import pytest
from jsonschema import Draft202012Validator
from openai.types.chat import ChatCompletionFunctionToolParam
from pydantic import TypeAdapter

from app.memory_tools.definitions import MAX_CHARS, MAX_TOOLS, TOOLS, definitions
from app.schemas.memory_tools import Format
from tests.paths import ROOT

FORMATS = get_args(Format)


@pytest.mark.parametrize("style", FORMATS)
def test_there_are_five_tools_at_most_and_all_definitions_have_two_thousand_characters_at_most(style: Format):
    assert MAX_CHARS == 2_000
    told = definitions(style)
    assert len(told) <= MAX_TOOLS == 5
    assert len(json.dumps(told, separators=(",", ":"), ensure_ascii=False)) <= MAX_CHARS


def test_both_formats_say_the_same_of_the_same_tools():
    openai = [each["function"] for each in definitions("openai")]
    mcp = definitions("mcp")
    assert [(each["name"], each["description"], each["parameters"]) for each in openai] == [
        (each["name"], each["description"], each["inputSchema"]) for each in mcp
    ]
    assert tuple(each["name"] for each in mcp) == tuple(TOOLS)


def test_openais_own_types_and_a_json_schema_validator_take_them():
    adapter = TypeAdapter(list[ChatCompletionFunctionToolParam])
    assert adapter.validate_python(definitions("openai"))
    for each in definitions("mcp"):
        Draft202012Validator.check_schema(each["inputSchema"])


def test_the_protocols_own_type_takes_them_with_their_hints():
    types = pytest.importorskip("mcp_types", reason="the extra mcp is not installed")
    tools = [types.Tool.model_validate(each) for each in definitions("mcp")]
    hints = {tool.name: (tool.annotations.read_only_hint, tool.annotations.destructive_hint) for tool in tools}
    assert hints == {
        "get_my_goals": (True, None),
        "get_tool_suggestions": (True, None),
        "recall": (True, None),
        "remember": (False, False),
        "forget": (False, True),
    }


def test_no_tool_takes_a_user_or_an_agent():
    fields = {name for each in definitions("mcp") for name in each["inputSchema"]["properties"]}
    assert fields == {
        "query",
        "top_k",
        "tool",
        "input",
        "error",
        "kind",
        "text",
        "outcome",
        "steps",
        "retrieval_id",
        "id",
        "value",
        "unit",
        "category",
    }


@pytest.mark.parametrize("tool", TOOLS)
def test_the_examples_of_a_tool_fit_what_the_model_is_told_of_it(tool: str):
    of = TOOLS[tool]
    validator = Draft202012Validator(of.schema())
    examples = json.loads((ROOT / "app" / "edge" / "examples.json").read_text())
    for example in examples[of.arguments.__name__]:
        validator.validate(example)
        of.arguments.model_validate(example)


def test_the_decision_record_names_every_tool():

    (record,) = (ROOT / "docs" / "decisions").glob("0017-*.md")
    assert set(re.findall(r"`(\w+)`", record.read_text())) >= set(TOOLS)
