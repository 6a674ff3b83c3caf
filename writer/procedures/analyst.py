"""The analyst that needs no model: it finds failures by rule and says by what it judged."""

import asyncio
from dataclasses import dataclass

from writer.analysis.calls import StoredRun
from writer.analysis.failures import Failure, find
from writer.analysis.state_changes import changes_state
from writer.procedures.fix_text import failure_lesson, learned_fix
from writer.procedures.ports import Analysis


@dataclass(frozen=True, slots=True)
class RuleAnalyst:
    """Reads a run's calls and turns; pure, deterministic, linear in their number."""

    async def analyse(self, run: StoredRun) -> Analysis:
        """Returns what the run teaches, worked out beside the event loop."""
        return await asyncio.to_thread(explain, run)


def explain(run: StoredRun) -> Analysis:
    """Returns the lesson of the run: of its most telling fix, or else of a failure that nothing put right."""
    found = find(run.calls, run.turns, succeeded=run.outcome == "success")
    if found.recovered:
        told = min(found.recovered, key=_least_telling)
        return Analysis("learned_fix", learned_fix(run, found, told), told, found.recovered, found.lost)
    if found.lost:
        told = max(found.lost, key=lambda failure: (len(failure.failed), failure.failed[-1]))
        return Analysis("failure_lesson", failure_lesson(run, found, told), told, (), found.lost)
    return Analysis()


_KINDS = ("args_changed", "args_changed_after_other_tool", "same_args_after_other_tool", "same_args_retry")


def _least_telling(failure: Failure) -> tuple[int | bool, ...]:
    """Smaller of what teaches more: hard evidence, other arguments, a call that changes something, few differences."""
    soft = failure.evidence in {"complaint", "empty_output"}
    kind = _KINDS.index(failure.kind or "same_args_retry")
    return soft, kind, not changes_state(failure.tool), len(failure.differences), failure.failed[0]
