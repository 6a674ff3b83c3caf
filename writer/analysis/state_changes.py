"""What a run changed: the calls of tools that do more than look something up, and succeeded."""

import re
from collections.abc import Sequence

MOST_EFFECTS = 200

_READS_ONLY = re.compile(r"(get|find|list|search|check|read|describe|show|fetch|lookup)_|(calculate|think)$")


def changes_state(tool: str) -> bool:
    """Returns whether a tool of this name does more than look something up."""
    return _READS_ONLY.match(tool) is None


def effects(calls: Sequence[tuple[str, bool]], plan: Sequence[str]) -> list[str]:
    """Returns the names of the tools that changed something, once for each success, at most MOST_EFFECTS.

    A run without tool calls says what it did by the steps of its plan.

    Args:
        calls: of each tool call, in order, the tool's name and whether it failed.
        plan: the steps of the plan.
    """
    if not calls:
        return list(plan[:MOST_EFFECTS])
    return [tool for tool, failed in calls if not failed and changes_state(tool)][:MOST_EFFECTS]
