"""Builds a plan from a run's calls, for a run without a plan."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import orjson
from pydantic import JsonValue

from retrieval.text import shortened
from writer.analysis.call_changes import changes
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


class CallMade(NamedTuple):
    """One tool call of a run: the tool, its arguments, whether the call failed, and whether it changes something."""

    tool: str
    input: JsonValue
    failed: bool
    changes: bool


def plan_of(calls: Sequence[CallMade]) -> list[str]:
    """Returns a plan of at most MOST_STEPS steps, each one call, see ``step_of``.

    The steps are the calls that changed something, each with the look-up just before it, which it may need (a price, a
    state), and what was looked up after the last change, which may be the answer, in order and without calls that
    failed; if nothing was changed, all calls that did not fail; if every call failed, all calls. A call that was only
    made again after a failure is one step.
    """
    worked: list[CallMade] = []
    failed = False
    for call in calls:
        if call.failed:
            failed = True
        elif not (failed and call in worked[-1:]):
            worked.append(call)
            failed = False
    outside = [call for call in worked if not works_out(call.tool)]
    changed = [call.changes for call in outside]
    kept = [call for place, call in enumerate(outside) if any(changed[place : place + 2]) or not any(changed[place:])]
    return [step_of(call.tool, call.input) for call in (kept or worked or calls)[:MOST_STEPS]]


def step_of(tool: str, given: JsonValue) -> str:
    """Returns a call as a step of a plan, ``tool(argument=value, …)``, of at most STEP_CHARS characters.

    The longest arguments share the characters that the others leave, so that an edit of a line and a statement are told
    whole.
    """
    arguments = given if isinstance(given, dict) else {"input": given}
    texts = {name: _text(value) for name, value in arguments.items()}
    room, longest = STEP_CHARS - len(tool) - sum(len(name) + 3 for name in texts), VALUE_CHARS
    for place, chars in enumerate(sorted(map(len, texts.values()))):
        longest = max(room // (len(texts) - place), VALUE_CHARS)
        if chars > longest:
            break
        room -= chars
    inside = ", ".join(f"{name}={shortened(text, longest)}" for name, text in texts.items())
    return shortened(f"{tool}({inside})".replace("\x00", ""), STEP_CHARS)


def plan_by_status(traces: Traces) -> list[str]:
    """Returns a plan made from the calls of a run by their statuses and their tools' names, as retain does.

    Calls without input are left out: else runs of one tool had equal plans, and were merged.
    """
    made = [
        CallMade(tool, trace["input"], failed_by_status(trace["status"]), changes_state(tool))
        for trace in traces
        if (tool := str(trace["tool"])) and trace["input"]
    ]
    return plan_of(made)


def plan_by_output(traces: Traces, calls: Sequence[Call], plan: Sequence[str]) -> list[str]:
    """Returns a run's plan; one that retain made from the calls is made again by the calls' outputs and statements."""
    if given_plan(traces, plan):
        return list(plan)
    called = zip(traces, calls, strict=False)
    return plan_of(
        [
            CallMade(call.tool, trace["input"], call.failed, changes(call))
            for trace, call in called
            if call.tool and trace["input"]
        ]
    )


def given_plan(traces: Traces, plan: Sequence[str]) -> list[str]:
    """Returns the plan that the backend gave for a run; empty if each of its steps is a call of the run.

    Such a plan was made from the calls, by whichever version of casebank.
    """
    made = {step_of(str(trace["tool"]), trace["input"]) for trace in traces if trace["input"]}
    return [] if made.issuperset(plan) else list(plan)


def _text(value: JsonValue) -> str:
    if isinstance(value, str):
        return value
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:  # an integer over 64 bits, which a tool may well be called with
        return repr(value)
