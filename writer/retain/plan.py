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
"""Longest value of an argument in such a step."""
MOST_STEPS = 200
"""Most steps of a plan that is made from calls."""


class CallMade(TypedDict):
    """One tool call: the tool, its arguments, and whether the call failed."""

    tool: str
    input: JsonValue
    failed: bool


def plan_of(calls: Sequence[CallMade]) -> list[str]:
    """Returns a plan of at most MOST_STEPS steps, each one call as ``tool(argument=value, …)``, shortened.

    The steps are the calls that changed something and did not fail, in order; if there are no such calls, all calls.
    """
    changes = [call for call in calls if changes_state(call["tool"]) and not call["failed"]]
    steps = []
    for call in (changes or calls)[:MOST_STEPS]:
        arguments = call["input"] if isinstance(call["input"], dict) else {"input": call["input"]}
        inside = ", ".join(f"{name}={_short(value, VALUE_CHARS)}" for name, value in arguments.items())
        steps.append(_short(f"{call['tool']}({inside})", STEP_CHARS))
    return steps


def _short(value: JsonValue, longest: int) -> str:
    if not isinstance(value, str):
        try:
            value = orjson.dumps(value).decode()
        except orjson.JSONEncodeError:  # an integer over 64 bits, which a tool may well be called with
            value = repr(value)
    return shortened(value.replace("\x00", ""), longest)
