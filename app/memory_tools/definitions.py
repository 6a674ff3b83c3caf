"""The five tools: their calls, and their definitions in the formats of OpenAI and MCP.

Every prompt contains all definitions, so together they have at most ``MAX_CHARS`` characters.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from prometheus_client import Counter
from pydantic import BaseModel

from app.memory_tools.asking import Asking
from app.memory_tools.recall import my_goals, recall
from app.memory_tools.remember import forget, remember
from app.memory_tools.suggestions import suggestions
from app.schemas.memory_tools import ForgetIn, Format, GoalsIn, RememberIn, SuggestionsIn, TaskIn

MAX_TOOLS, MAX_CHARS = 5, 2_000
"""Limits on the number of tools, and on the characters of all definitions as compact JSON in either format."""

CALLS = Counter("casebank_memory_tool_calls_total", "Calls of memory tools, by tool and result", ["tool", "how"])


@dataclass(frozen=True, slots=True)
class Definition:
    """One tool.

    Attributes:
        run: answers a call with its arguments.
        reads: true: the tool only reads, apart from the log of decisions.
        destructive: true: the tool takes a memory out of use, so a client may ask its user first.
    """

    name: str
    description: str
    arguments: type[BaseModel]
    run: Callable[[Asking, Any], Awaitable[str]]
    reads: bool = True
    destructive: bool = False

    def schema(self) -> dict[str, Any]:
        """Returns the JSON Schema of the arguments, without titles, defaults and limits."""
        whole = self.arguments.model_json_schema()
        fields = {name: _plain(field, whole.get("$defs", {})) for name, field in whole["properties"].items()}
        required = {"required": whole["required"]} if "required" in whole else {}
        return {"type": "object", "properties": fields, **required}


TOOLS: Mapping[str, Definition] = {
    tool.name: tool
    for tool in (
        Definition("get_my_goals", "The user's current goals, the most relevant first.", GoalsIn, my_goals),
        Definition(
            "get_tool_suggestions",
            "Procedures and tools for a task; after a failed call, what put it right before.",
            SuggestionsIn,
            suggestions,
        ),
        Definition(
            "recall",
            "Call before you act: earlier runs of similar tasks, procedures, facts about the user, and a retrieval_id"
            " for remember.",
            TaskIn,
            recall,
        ),
        Definition(
            "remember",
            "Store a fact about the user, a finished run, or feedback on a recall.",
            RememberIn,
            remember,
            reads=False,
        ),
        Definition(
            "forget",
            "Take a fact or procedure out of use, if the user asks.",
            ForgetIn,
            forget,
            reads=False,
            destructive=True,
        ),
    )
}

for _name in TOOLS:
    CALLS.labels(_name, "answered"), CALLS.labels(_name, "refused")  # so that the first call shows as an increase


async def run_tool(name: str, asking: Asking, given: BaseModel) -> str:
    """Runs the tool and returns its answer, a text for the model."""
    how = "refused"
    try:
        text = await TOOLS[name].run(asking, given)
        how = "answered"
    finally:
        CALLS.labels(name, how).inc()
    return text


@cache
def definitions(style: Format) -> list[dict[str, Any]]:
    """Returns the definitions in the format of OpenAI function calling or of MCP."""
    found: list[dict[str, Any]] = []
    for tool in TOOLS.values():
        named = {"name": tool.name, "description": tool.description}
        if style == "openai":
            found.append({"type": "function", "function": {**named, "parameters": tool.schema()}})
        else:
            hints = {"readOnlyHint": tool.reads} | ({} if tool.reads else {"destructiveHint": tool.destructive})
            found.append({**named, "inputSchema": tool.schema(), "annotations": hints})
    return found


def _plain(field: Mapping[str, Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Returns type, choices and description of a field; null is left out, because the field is optional."""
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
