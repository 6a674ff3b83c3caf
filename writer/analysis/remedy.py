"""Describes the fix of a failure in words: tools, arguments, and values that are no data of the run."""

import re
from collections.abc import Sequence

from writer.analysis.argument_diff import concrete_differences
from writer.analysis.call_changes import changes
from writer.analysis.calls import Call
from writer.analysis.causes import instructs
from writer.analysis.edits import edit_difference
from writer.analysis.error_output import glimpse, texts_in
from writer.analysis.failures import MOST_BETWEEN, Failure, RunFailures
from writer.analysis.placeholders import clean, form

TOOL_CHARS = 80
MOST_NAMED = 5
COMMAND_CHARS = 200
MOST_BEFORE = 3
"""Maximum number of calls before the call that worked that a fix contains, the last of them."""


def tool_name(tool: str) -> str:
    """Returns the name of a tool, with "_" in place of unusual characters; "the tool" if the name is empty."""
    return re.sub(r"[^\w.:/-]+", "_", clean(tool, TOOL_CHARS)) or "the tool"


def listed(names: Sequence[str]) -> str:
    """Returns the first MOST_NAMED names, with commas, and with an ellipsis in place of the others."""
    return ", ".join(names[:MOST_NAMED]) + (", …" if len(names) > MOST_NAMED else "")


def changed(run: RunFailures, failure: Failure) -> str:
    """Describes the differences between the failed call and the call that succeeded, without data of the run."""
    if failure.succeeded is None or not failure.differences:
        return "the arguments as a whole"
    failed, success = (run.calls[at] for at in (failure.failed[-1], failure.succeeded))
    if success.line is not None:  # a command line is told as a whole, at the level of the lesson
        told = [item.how for item in failure.differences]
    else:
        told = concrete_differences(failed.arguments, success.arguments)
    return "; ".join(told[:MOST_NAMED]) or "the arguments as a whole"


def called_first(run: RunFailures, failure: Failure) -> list[str]:
    """Returns the calls before a fix, see `calls_before`: their tools, with the form of a command line or the edit."""
    if failure.succeeded is None or failure.kind == "other_tool":
        return []
    names = []
    for call in calls_before(run, failure, lookups=True):
        name = tool_name(call.tool)
        if call.line is not None:
            name += f" with {clean(form(call.arguments, concrete=run.concrete), COMMAND_CHARS)}"
        elif change := edit_difference(call, run.calls):
            name += f" ({clean(change, COMMAND_CHARS)})"
        names.append(name)
    return [name for name in dict.fromkeys(names) if name != tool_name(failure.tool)]  # alone, it says nothing


def calls_before(run: RunFailures, failure: Failure, *, lookups: bool = False) -> list[Call]:
    """Returns the last successful calls between the last failure and the success that probably made it possible.

    These are the calls with a new value of the success in their output, or else those that changed something, or else,
    with ``lookups``, those that only look something up, except commands. Calls that an output told the agent to make
    are left out.
    """
    first, last, end = failure.failed[0], failure.failed[-1], failure.succeeded or 0
    seen = run.calls[max(first, end - MOST_BETWEEN) : end]
    orders = "\n".join(text for call in seen if instructs(text := glimpse(call.output)))
    between = [
        call
        for call in seen
        if call.index > last and call.tool and not call.failed and call.tool not in orders and not _obeys(call, orders)
    ]
    fresh = texts_in(run.calls[end].arguments) - texts_in(run.calls[last].arguments)
    sources = [call for call in between if any(text in glimpse(call.output) for text in fresh)]
    rest = [call for call in between if call.line is None] if lookups else []
    return (sources or [call for call in between if changes(call)] or rest)[-MOST_BEFORE:]


def _obeys(call: Call, orders: str) -> bool:
    """Returns whether ``orders``, the outputs that give instructions, have a command of the call's command line."""
    parts = re.split(r"&&|\|\||[;\n]", call.line or "")
    return any(part.strip() in orders for part in parts if part.strip())


def remedy(run: RunFailures, failure: Failure) -> str:
    """Describes the fix of a failure in one sentence, without data of the run."""
    what = instead(run, failure) if failure.kind == "other_tool" else changed(run, failure)
    return remedy_text(failure, called_first(run, failure), what)


def instead(run: RunFailures, failure: Failure) -> str:
    """Returns the name of the tool that succeeded in place of the failed tool."""
    return tool_name(run.calls[failure.succeeded or 0].tool)


def remedy_text(failure: Failure, before: list[str], what: str) -> str:
    """Describes the fix of a failure in one sentence, from parts that the caller has computed.

    Args:
        failure: the failure.
        before: the tools to call first, see `called_first`.
        what: the change of the arguments, see `changed`; for the kind "other_tool" the other tool, see `instead`.
    """
    if failure.kind == "other_tool":
        return f"calling {what} in place of {tool_name(failure.tool)} worked"
    tool, first = tool_name(failure.tool), f"after {listed(before)}, " if before else ""
    if failure.kind in {"same_args_retry", "same_args_after_other_tool"}:
        return f"{first}calling {tool} again with the same arguments worked"
    return f"{first}calling {tool} again with other arguments worked: {what}"
