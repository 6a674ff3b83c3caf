"""Runs a memory tool, for HTTP and for the Model Context Protocol."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from prometheus_client import Counter
from pydantic import BaseModel

from app.memory_tools.asking import Asking
from app.memory_tools.definitions import TOOLS, ToolName
from app.memory_tools.recall import my_goals, recall
from app.memory_tools.remember import forget, remember
from app.memory_tools.suggestions import suggestions

CALLS = Counter("casebank_memory_tool_calls_total", "Calls of memory tools, by tool and result", ["tool", "how"])
for _name in TOOLS:
    CALLS.labels(_name, "answered"), CALLS.labels(_name, "refused")  # so that the first call shows as an increase

_RUNS: Mapping[ToolName, Callable[[Asking, Any], Awaitable[str]]] = {
    "get_my_goals": my_goals,
    "get_tool_suggestions": suggestions,
    "recall": recall,
    "remember": remember,
    "forget": forget,
}


async def run_tool(name: str, asking: Asking, given: BaseModel) -> str:
    """Runs the tool and returns its answer, a text for the model."""
    how = "refused"
    try:
        text = await _RUNS[cast("ToolName", name)](asking, given)
        how = "answered"
    finally:
        CALLS.labels(name, how).inc()
    return text
