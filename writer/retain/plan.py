"""Builds a plan from a run's calls, for a run without one."""

from collections.abc import Sequence

import orjson
from pydantic import JsonValue
from typing_extensions import TypedDict  # what pydantic reads before Python 3.12

from retrieval.text import shortened
from writer.analysis.state_changes import changes_state

STEP_CHARS = 500
"""Longest step of a plan that is made from a call."""
VALUE_CHARS = 80
MOST_STEPS = 200


class CallMade(TypedDict):
    """One tool call, and whether it failed."""

    tool: str
    input: JsonValue
    failed: bool


def plan_of(calls: Sequence[CallMade]) -> list[str]:
    """Returns the calls that changed something and did not fail, in order, or, where there were none, all calls.

    At most MOST_STEPS of them, each in one short line.
    """
    changes = [call for call in calls if changes_state(call["tool"]) and not call["failed"]]
    return [_line(call["tool"], call["input"]) for call in (changes or calls)[:MOST_STEPS]]


def _line(tool: str, arguments: JsonValue) -> str:
    """Returns a call as ``tool(argument=value, …)``."""
    named = arguments if isinstance(arguments, dict) else {"input": arguments}
    inside = ", ".join(f"{name}={_short(value, VALUE_CHARS)}" for name, value in named.items())
    return _short(f"{tool}({inside})", STEP_CHARS)


def _short(value: JsonValue, longest: int) -> str:
    if not isinstance(value, str):
        try:
            value = orjson.dumps(value).decode()
        except orjson.JSONEncodeError:  # an integer over 64 bits, which a tool may well be called with
            value = repr(value)
    return shortened(value.replace("\x00", ""), longest)
