"""The five tools: what a model is told of each, in the two formats that models' libraries take.

Every character of a definition is in every prompt: together they have at most ``MAX_CHARS``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from pydantic import BaseModel

from app.schemas.memory_tools import ForgetIn, Format, GoalsIn, RecallIn, RememberIn, SuggestionsIn

MAX_TOOLS, MAX_CHARS = 5, 2_000
"""Characters of all definitions together, as compact JSON, in either format."""

ToolName = Literal["get_my_goals", "get_tool_suggestions", "recall", "remember", "forget"]


@dataclass(frozen=True, slots=True)
class Definition:
    """One tool.

    Attributes:
        description: for the model.
        arguments: what it takes.
        reads: whether it only looks; the log of decisions does not count.
        destructive: whether what it does takes something away, so that a person may want to be asked first.
    """

    name: ToolName
    description: str
    arguments: type[BaseModel]
    reads: bool = True
    destructive: bool = False

    def schema(self) -> dict[str, Any]:
        """Returns the JSON Schema of the arguments, without what a model has no use for."""
        whole = self.arguments.model_json_schema()
        fields = {name: _plain(field, whole.get("$defs", {})) for name, field in whole["properties"].items()}
        required = {"required": whole["required"]} if "required" in whole else {}
        return {"type": "object", "properties": fields, **required}


TOOLS: Mapping[str, Definition] = {
    tool.name: tool
    for tool in (
        Definition("get_my_goals", "The user's goals that hold now, nearest to the query first.", GoalsIn),
        Definition(
            "get_tool_suggestions",
            "Procedures that fit a task, how your tools did before, and what put failures right.",
            SuggestionsIn,
        ),
        Definition(
            "recall",
            "Ask before you act: earlier runs like this task and how they went, procedures, and what is known of the"
            " user; with a receipt for remember.",
            RecallIn,
        ),
        Definition(
            "remember",
            "Keep what you learned of the user; a run, once it is over; or feedback on a recall that helped or misled.",
            RememberIn,
            reads=False,
        ),
        Definition(
            "forget",
            "Take a fact or procedure out of use, when the user asks for it.",
            ForgetIn,
            reads=False,
            destructive=True,
        ),
    )
}


@cache
def definitions(style: Format) -> list[dict[str, Any]]:
    """Returns the definitions as OpenAI's function calling or the Model Context Protocol has them."""
    return [_as_mcp(tool) if style == "mcp" else _as_openai(tool) for tool in TOOLS.values()]


def _as_openai(tool: Definition) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.schema()}
    return {"type": "function", "function": function}


def _as_mcp(tool: Definition) -> dict[str, Any]:
    hints = {"readOnlyHint": True} if tool.reads else {"readOnlyHint": False, "destructiveHint": tool.destructive}
    return {"name": tool.name, "description": tool.description, "inputSchema": tool.schema(), "annotations": hints}


def _plain(field: Mapping[str, Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Returns type, choices and description of a field; that it may be null is said by its being optional."""
    found: dict[str, Any] = {}
    for part in (field, *field.get("anyOf", [])):
        part = named[part["$ref"].rpartition("/")[2]] if "$ref" in part else part  # noqa: PLW2901
        if part.get("type", "null") != "null":
            found["type"] = part["type"]
        if "enum" in part:
            found["enum"] = [*found.get("enum", []), *part["enum"]]
        if "items" in part:
            found["items"] = {"type": part["items"]["type"]}
    return found | ({"description": field["description"]} if "description" in field else {})
