"""What put a failure right, in words that hold nothing of the run's data: tools, arguments, placeholders."""

import re
from collections.abc import Sequence

from writer.analysis.causes import instructs
from writer.analysis.error_output import glimpse, texts_in
from writer.analysis.failures import Failure, Found
from writer.analysis.placeholders import clean
from writer.analysis.state_changes import changes_state

TOOL_CHARS = 80
MOST_NAMED = 5
MOST_LOOKED_AT = 50


def tool_name(tool: str) -> str:
    """Returns a tool's name without what no name has; one in several words is no name but a text."""
    return re.sub(r"[^\w.:/-]+", "_", clean(tool, TOOL_CHARS)) or "the tool"


def listed(names: Sequence[str]) -> str:
    """Returns the first MOST_NAMED of the names, with an ellipsis for the rest."""
    return ", ".join(names[:MOST_NAMED]) + (", …" if len(names) > MOST_NAMED else "")


def changed(failure: Failure) -> str:
    """Returns what differs between the failing call and the one that worked, without their values."""
    return "; ".join(item.how for item in failure.differences[:MOST_NAMED]) or "the arguments as a whole"


def called_first(found: Found, failure: Failure) -> list[str]:
    """Returns which tools, called between failure and success, the success of the same tool seems to owe something.

    With other arguments: those whose output holds a value that is new, or else those that only look things up. Never
    one that an output named while giving instructions.
    """
    if failure.succeeded is None or failure.kind == "other_tool":
        return []
    calls = found.calls[failure.failed[0] : min(failure.succeeded, failure.failed[0] + MOST_LOOKED_AT)]
    injected = "\n".join(text for call in calls if instructs(text := glimpse(call.output)))
    names = [name for name in _helpful(found, failure) if name not in injected]
    return [tool_name(name) for name in names[:MOST_NAMED]]


def _helpful(found: Found, failure: Failure) -> Sequence[str]:
    if failure.kind != "args_changed_after_other_tool" or failure.succeeded is None:
        return failure.between
    last = failure.failed[-1]
    fresh = texts_in(found.calls[failure.succeeded].given) - texts_in(found.calls[last].given)
    between = found.calls[last + 1 : min(failure.succeeded, last + 1 + MOST_LOOKED_AT)]
    sources = [call.tool for call in between if any(text in glimpse(call.output) for text in fresh)]
    return list(dict.fromkeys(sources)) or [name for name in failure.between if not changes_state(name)]


def remedy(found: Found, failure: Failure) -> str:
    """Returns what put the failure right, in words that hold nothing of the run's data."""
    what = instead(found, failure) if failure.kind == "other_tool" else changed(failure)
    return remedy_text(failure, called_first(found, failure), what)


def instead(found: Found, failure: Failure) -> str:
    """Returns the name of the tool that did what the failing one was called for."""
    return tool_name(found.calls[failure.succeeded or 0].tool)


def remedy_text(failure: Failure, before: list[str], what: str) -> str:
    """Returns the same, of what is known already: `called_first`, and `changed` or `instead`."""
    if failure.kind == "other_tool":
        return f"calling {what} in place of {tool_name(failure.tool)} worked"
    tool, first = tool_name(failure.tool), f"after {listed(before)}, " if before else ""
    if failure.kind in {"same_args_retry", "same_args_after_other_tool"}:
        return f"{first}calling {tool} again with the same arguments worked"
    return f"{first}calling {tool} again with other arguments worked: {what}"
