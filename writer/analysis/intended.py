"""Recognises failures that a run wanted: its task asked for one, or it met the same error again and succeeded."""

import re
from collections.abc import Sequence

import re2

from writer.analysis.calls import Call
from writer.analysis.error_output import beginning

TASK_CHARS = 2_000

_FAILS = r"(?:fail|error|crash|reject|refus|den(?:y|ied|ies)|forbidden|throw|raise|break|[45]\d\d\b)"
_WANTS = r"\b(?:check|confirm|ensure|make sure|prove|see|show|test|verify)\b"
_NOT = re.compile(r"(?i)\b(?:never|no|no longer|not|nothing|without)\b|n.t\b")
_ASKS = re2.compile(
    r"(?i)\breproduc|\breproduzier|\brepro\b|\bprovok|\bnachstell"
    r"|\b(?:trigger|cause|force|get)\b.{0,30}\b(?:the|an|this|that) \w{0,20} ?(?:error|failure|crash|exception)"
    rf"|{_WANTS}.{{0,60}}\b(?:is|are|still|that|it|gets?|whether|if|must|should)\b.{{0,40}}\b{_FAILS}"
    rf"|\b(?:must|should|expected to|supposed to)\b (?:\w+ )?{_FAILS}|\b(?:expect|expecting)\b.{{0,30}}{_FAILS}",
)


def asks_for_failure(task: str) -> bool:
    """Returns whether a task asks for a failure, as in "reproduce the crash" or "check that a guest is rejected"."""
    asked = _ASKS.search(beginning(task, TASK_CHARS))
    return asked is not None and _NOT.search(asked.group()) is None


def came_to_the_same(failed: Sequence[Call]) -> bool:
    """Returns whether a call was repeated unchanged, with other calls between, and failed with the same error."""
    first, last = failed[0], failed[-1]
    return (
        last.index - first.index >= len(failed) > 1
        and first.arguments == last.arguments
        and first.failure == last.failure
    )
