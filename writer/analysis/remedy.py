"""Describes the fix of a failure in words: tools, arguments, and values that are no data of the run."""

import re
from collections.abc import Sequence

from writer.analysis.argument_diff import concrete_differences
from writer.analysis.calls import Call
from writer.analysis.causes import instructs
from writer.analysis.command_goals import only_reads
from writer.analysis.error_output import glimpse, texts_in
from writer.analysis.failures import Failure, RunFailures
from writer.analysis.placeholders import clean, form
from writer.analysis.state_changes import changes_state

TOOL_CHARS = 80
MOST_NAMED = 5
MOST_LOOKED_AT = 50
MOST_COMMANDS = 3
"""Maximum number of commands between failure and success that a fix names, the last of them."""
COMMAND_CHARS = 200


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
    """Returns the tools, called between failure and success, that probably made the success possible.

    If the arguments changed, these are the tools whose output has one of the new values, or else the tools that only
    read. A tool is left out if its calls failed, or if an output with an instruction names it.
    """
    if failure.succeeded is None or failure.kind == "other_tool":
        return []
    first, last = failure.failed[0], failure.failed[-1]
    calls = run.calls[first : min(failure.succeeded, first + MOST_LOOKED_AT)]
    injected = "\n".join(text for call in calls if instructs(text := glimpse(call.output)))
    if run.calls[last].line is not None:
        return _commands_first(run, failure, calls, injected)
    between = run.calls[last + 1 : min(failure.succeeded, last + 1 + MOST_LOOKED_AT)]
    worked = [call for call in between if not call.failed and call.tool in failure.between]
    names = list(dict.fromkeys(call.tool for call in worked))
    if failure.kind == "args_changed_after_other_tool":
        fresh = texts_in(run.calls[failure.succeeded].arguments) - texts_in(run.calls[last].arguments)
        sources = [call.tool for call in worked if any(text in glimpse(call.output) for text in fresh)]
        names = list(dict.fromkeys(sources)) or [name for name in names if not changes_state(name)]
    return [tool_name(name) for name in [name for name in names if name not in injected][:MOST_NAMED]]


def _commands_first(run: RunFailures, failure: Failure, calls: Sequence[Call], injected: str) -> list[str]:
    """Returns the last successful calls before the success that changed something; commands by their form."""
    helpful = []
    for call in calls[failure.failed[-1] - failure.failed[0] + 1 :]:
        line = call.line
        if call.failed or call.tool in injected or (line is None and not changes_state(call.tool)):
            continue
        if line is None:
            helpful.append(tool_name(call.tool))
        elif not only_reads(line) and not follows(line, injected):
            helpful.append(
                f"{tool_name(call.tool)} with {clean(form(call.arguments, concrete=run.concrete), COMMAND_CHARS)}"
            )
    return list(dict.fromkeys(helpful))[-MOST_COMMANDS:]


def follows(line: str, injected: str) -> bool:
    """Returns whether ``injected``, the outputs that give instructions, has a command of this command line."""
    return any(part.strip() in injected for part in re.split(r"&&|\|\||[;\n]", line) if part.strip())


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
