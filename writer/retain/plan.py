"""Builds a plan from a run's calls, for a run without a plan."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import orjson
from pydantic import JsonValue

from retrieval.text import shortened
from writer.analysis.call_changes import changes, opens_page
from writer.analysis.calls import StoredRun
from writer.analysis.run_counts import failed_by_status
from writer.analysis.state_changes import changes_state, works_out
from writer.nested import parts

Traces = Sequence[Mapping[str, JsonValue]]

STEP_CHARS = 500
"""Maximum characters of a plan's step that is made from a call."""
VALUE_CHARS = 80
"""Characters of an argument's value that such a step has room for, however many arguments the call has."""
MOST_STEPS = 200
"""Maximum number of steps of a plan that is made from calls."""
OUTPUT_CHARS, RUN_CHARS = 20_000, 1_000_000
"""Maximum characters of an output, and of all outputs of a run, that are searched for values of later calls."""
_WORD = re.compile(r"\w(?:[\w.@-]*\w)?")


class CallMade(NamedTuple):
    """One tool call of a run.

    Attributes:
        changes: true if the call changes something.
        opens: true if the call only opens a page, which later calls may change.
        output: the call's output; None: unknown.
    """

    tool: str
    input: JsonValue
    failed: bool
    changes: bool
    opens: bool = False
    output: JsonValue = None


def plan_of(calls: Sequence[CallMade], task: str = "") -> list[str]:
    """Returns a plan of at most MOST_STEPS steps, each one call, see ``step_of``.

    The steps are the calls that changed something, the look-ups that they need (see ``_needed``), and what was looked
    up after the last change, which may be the answer, in order and without calls that failed; if nothing was changed,
    all calls that did not fail; if every call failed, all calls. A call that was only made again after a failure is one
    step.
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
    steps = _needed(outside, _values(task, OUTPUT_CHARS)) or worked or calls
    return [step_of(call.tool, call.input) for call in steps[:MOST_STEPS]]


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


def plan_by_output(traces: Traces, run: StoredRun) -> list[str]:
    """Returns a run's plan; one that retain made from the calls is made again by the calls' outputs and statements."""
    if given_plan(traces, run.plan):
        return list(run.plan)
    made = [
        CallMade(call.tool, trace["input"], call.failed, changes(call) and not opens, opens, trace.get("output"))
        for trace, call in zip(traces, run.calls, strict=False)
        if call.tool and trace["input"]
        for opens in [opens_page(call)]
    ]
    return plan_of(made, run.task)


def given_plan(traces: Traces, plan: Sequence[str]) -> list[str]:
    """Returns the plan that the backend gave for a run; empty if each of its steps is a call of the run.

    Such a plan was made from the calls, by whichever version of casebank.
    """
    made = {step_of(str(trace["tool"]), trace["input"]) for trace in traces if trace["input"]}
    return [] if made.issuperset(plan) else list(plan)


def _needed(calls: Sequence[CallMade], known: set[str]) -> list[CallMade]:
    """Returns the calls that changed something, what was looked up after them, and the look-ups that they need.

    A look-up is needed if its output showed a number or an id that a later step was the first to use, or if the change
    just after it has an argument of the same value (an order is read, then cancelled) or its output is unknown. A page
    that was opened and left for another is needed only with a step on it.
    """
    shows = any(call.output is not None for call in calls)
    searched = min(OUTPUT_CHARS, RUN_CHARS // max(len(calls), 1))
    values = [_values(call.input) if shows else set[str]() for call in calls]
    first = {value: place for place in reversed(range(len(calls))) for value in values[place]}
    kept, wanted, changed = list[CallMade](), set[str](), False
    for place, call in reversed([*enumerate(calls)]):
        output = _text(call.output)[:searched].replace("\\n", " ") if wanted else ""
        shown = {value for value in wanted.intersection(_WORD.findall(output)) if first[value] > place}
        if call.changes or not changed or shown or _leads_to(call, calls[place + 1], kept[-1]):
            kept.append(call)
            wanted |= values[place] - known
        wanted -= shown
        changed |= call.changes
    return kept[::-1]


def _values(given: JsonValue, longest: int = STEP_CHARS) -> set[str]:
    """Returns the numbers and ids in a task or in a call's arguments: their words with a digit."""
    text = " ".join(str(part) for part in parts(given) if isinstance(part, str | int | float))
    return {word for word in _WORD.findall(text[:longest]) if any(map(str.isdigit, word))}


def _leads_to(look_up: CallMade, after: CallMade, step: CallMade) -> bool:
    """Returns whether a look-up was made for the call after it or, if it opens a page, for the next step."""
    if look_up.opens:
        return not step.opens
    shown, given = (each.input.values() if isinstance(each.input, dict) else () for each in (look_up, after))
    return after.changes and (look_up.output is None or any(value in given for value in shown))


def _text(value: JsonValue) -> str:
    if isinstance(value, str):
        return value
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:  # an integer over 64 bits, which a tool may well be called with
        return repr(value)
