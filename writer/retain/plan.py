"""Builds a plan from a run's calls, for a run without a plan."""

from collections.abc import Mapping, Sequence

import orjson
from pydantic import JsonValue
from typing_extensions import TypedDict  # what pydantic reads before Python 3.12

from retrieval.text import shortened
from writer.analysis.calls import Call
from writer.analysis.run_counts import failed_by_status
from writer.analysis.state_changes import changes_state, works_out

Traces = Sequence[Mapping[str, JsonValue]]

STEP_CHARS = 500
"""Maximum characters of a plan's step that is made from a call."""
VALUE_CHARS = 80
"""Characters of an argument's value that such a step has room for, however many arguments the call has."""
MOST_STEPS = 200
"""Maximum number of steps of a plan that is made from calls."""


class CallMade(TypedDict):
    """One tool call: the tool, its arguments, and whether the call failed."""

    tool: str
    input: JsonValue
    failed: bool


def plan_of(calls: Sequence[CallMade]) -> list[str]:
    """Returns a plan of at most MOST_STEPS steps, each one call as ``tool(argument=value, …)``, shortened.

    The arguments share the characters of a step, so that a statement, the only argument of its call, is told whole.
    The steps are the calls that changed something, each with the look-up just before it, which it may need (a price, a
    state), in order and without calls that failed; if nothing was changed, all calls that did not fail; if every call
    failed, all calls. A call that was only made again after a failure is one step.
    """
    worked: list[CallMade] = []
    failed = False
    for call in calls:
        if call["failed"]:
            failed = True
        elif not (failed and call in worked[-1:]):
            worked.append(call)
            failed = False
    outside = [call for call in worked if not works_out(call["tool"])]
    changed = [changes_state(call["tool"]) for call in outside]
    kept = [call for place, call in enumerate(outside) if any(changed[place : place + 2])]
    steps = []
    for call in (kept or worked or calls)[:MOST_STEPS]:
        arguments = call["input"] if isinstance(call["input"], dict) else {"input": call["input"]}
        longest = max(VALUE_CHARS, STEP_CHARS // max(len(arguments), 1))
        inside = ", ".join(f"{name}={_short(value, longest)}" for name, value in arguments.items())
        steps.append(_short(f"{call['tool']}({inside})", STEP_CHARS))
    return steps


def plan_by_status(traces: Traces) -> list[str]:
    """Returns a plan made from the calls of a run, without those that failed by their status.

    Calls without input are left out: else runs of one tool had equal plans, and were merged.
    """
    made = [_made(trace, failed=failed_by_status(trace["status"])) for trace in traces if trace["input"]]
    return plan_of(made)


def plan_by_output(traces: Traces, calls: Sequence[Call], plan: Sequence[str]) -> list[str]:
    """Returns a run's plan; if retain made it from the calls, without the calls that failed by their output."""
    return list(plan) if given_plan(traces, calls, plan) else _by_output(traces, calls)


def given_plan(traces: Traces, calls: Sequence[Call], plan: Sequence[str]) -> list[str]:
    """Returns the plan that the backend gave for a run; empty if it was made from the run's calls.

    Retain makes a plan by the calls' statuses, and the worker corrects it by their outputs.
    """
    return [] if list(plan) in (plan_by_status(traces), _by_output(traces, calls)) else list(plan)


def _by_output(traces: Traces, calls: Sequence[Call]) -> list[str]:
    called = zip(traces, calls, strict=False)
    return plan_of([_made(trace, failed=call.failed) for trace, call in called if call.tool and trace["input"]])


def _made(trace: Mapping[str, JsonValue], *, failed: bool) -> CallMade:
    return CallMade(tool=str(trace["tool"]), input=trace["input"], failed=failed)


def _short(value: JsonValue, longest: int) -> str:
    if not isinstance(value, str):
        try:
            value = orjson.dumps(value).decode()
        except orjson.JSONEncodeError:  # an integer over 64 bits, which a tool may well be called with
            value = repr(value)
    return shortened(value.replace("\x00", ""), longest)
