"""The rule-based analyst: finds the failures of a run, and writes the lesson of the most instructive one."""

import asyncio
from dataclasses import dataclass

from retrieval.tables.kinds import AbstractionLevel
from writer.analysis.calls import StoredRun
from writer.analysis.failures import Failure, FixKind, find
from writer.analysis.state_changes import changes_state
from writer.procedures.ports import Analysis
from writer.procedures.rules.fix_text import failure_lesson, learned_fix


@dataclass(frozen=True, slots=True)
class RuleAnalyst:
    """Analyses a run's calls and turns; pure, deterministic, linear in their number."""

    async def analyse(self, run: StoredRun, level: AbstractionLevel | None = None) -> Analysis:
        """Returns what the run teaches, worked out beside the event loop."""
        return await asyncio.to_thread(explain, run, level)


def explain(run: StoredRun, level: AbstractionLevel | None = None) -> Analysis:
    """Returns the run's failures, with the lesson of its most instructive fix, or else of a failure without one."""
    found = find(run.calls, run.turns, succeeded=run.outcome == "success", concrete=level == "concrete")
    if found.recovered:
        subject = min(found.recovered, key=_fix_order)
        return Analysis("learned_fix", learned_fix(run, found, subject), subject, found.recovered, found.lost)
    if found.lost:
        subject = max(found.lost, key=lambda failure: (len(failure.failed), failure.failed[-1]))
        return Analysis("failure_lesson", failure_lesson(run, found, subject), subject, (), found.lost)
    return Analysis()


_KINDS_BY_VALUE: tuple[FixKind, ...] = (
    "args_changed",
    "args_changed_after_other_tool",
    "other_tool",
    "same_args_after_other_tool",
    "same_args_retry",
)


def _fix_order(failure: Failure) -> tuple[int | bool, ...]:
    """Returns a sort key, smaller for what teaches more.

    In this order: hard evidence, changed arguments, a call that changes something, few differences, an early failure.
    """
    soft = failure.evidence in {"complaint", "empty_output"}
    kind = _KINDS_BY_VALUE.index(failure.kind or "same_args_retry")
    return soft, kind, not changes_state(failure.tool), len(failure.differences), failure.failed[0]
