"""Recognises failures that a run wanted: its task asked for one, or it met the same error again and succeeded."""

from collections.abc import Sequence

from retrieval.patterns import patterns
from writer.analysis.calls import Call
from writer.analysis.error_output import beginning

TASK_CHARS = 2_000

_FORMS = patterns("writer.analysis", "intended")


def asks_for_failure(task: str) -> bool:
    """Returns whether a task asks for a failure, as in "reproduce the crash" or "check that a guest is rejected"."""
    asked = _FORMS["asks"].search(beginning(task, TASK_CHARS))
    return asked is not None and _FORMS["not"].search(asked.group()) is None


def came_to_the_same(failed: Sequence[Call]) -> bool:
    """Returns whether a call was repeated unchanged, with other calls between, and failed with the same error."""
    first, last = failed[0], failed[-1]
    return (
        last.index - first.index >= len(failed) > 1
        and first.arguments == last.arguments
        and first.failure == last.failure
    )
