"""What a run changed: the calls of tools that do more than look something up, and succeeded."""

import re
from collections.abc import Iterable

MOST_EFFECTS = 200

_READS_ONLY = re.compile(r"(get|find|list|search|check|read|describe|show|fetch|lookup)_|(calculate|think)$")


def changes_state(tool: str) -> bool:
    """Returns whether a tool of this name does more than look something up."""
    return _READS_ONLY.match(tool) is None


def effects(calls: Iterable[tuple[str, bool]], plan: list[str]) -> list[str]:
    """Returns the names of the tools that changed something, once for each success, at most MOST_EFFECTS.

    A run without tool calls says what it did by the steps of its plan.

    Args:
        calls: name and success of each tool call, in order.
        plan: the steps of the plan.
    """
    made = list(calls)
    named = [tool for tool, succeeded in made if succeeded and changes_state(tool)] if made else plan
    return named[:MOST_EFFECTS]
