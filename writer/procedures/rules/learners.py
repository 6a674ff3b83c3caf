"""The learners by fixed rules, which need no language model, and the explanation of a run by them."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from retrieval.tables.kinds import AbstractionLevel
from writer.analysis.calls import StoredRun
from writer.analysis.failures import Failure, FixKind, find
from writer.analysis.state_changes import changes_state
from writer.procedures.ports import Analysis, ProcedureDraft
from writer.procedures.rules.fix_text import failure_lesson, learned_fix
from writer.procedures.rules.revise import revised
from writer.procedures.rules.script import script


def explain(run: StoredRun, level: AbstractionLevel | None = None) -> Analysis:
    """Returns the run's failures with one lesson: its most instructive fix, or else its most frequent failure."""
    failures = find(
        run.calls, run.turns, succeeded=run.outcome == "success", task=run.task, concrete=level == "concrete"
    )
    if failures.recovered:
        subject = min(failures.recovered, key=_fix_order)
        lesson = learned_fix(run, failures, subject)
        return Analysis("learned_fix", lesson, subject, failures.recovered, failures.lost)
    if failures.lost:
        subject = max(failures.lost, key=lambda failure: (len(failure.failed), failure.failed[-1]))
        return Analysis("failure_lesson", failure_lesson(run, failures, subject), subject, (), failures.lost)
    return Analysis()


_KINDS_BY_VALUE: tuple[FixKind, ...] = (
    "args_changed",
    "args_changed_after_other_tool",
    "other_tool",
    "same_args_after_other_tool",
    "same_args_retry",
)


def _fix_order(failure: Failure) -> tuple[int | bool, ...]:
    """Returns a sort key, smaller for a more instructive fix.

    Preferred are, in this order: hard evidence, changed arguments, a tool that changes state, few differences, and an
    early failure.
    """
    soft = failure.evidence in {"complaint", "empty_output"}
    kind = _KINDS_BY_VALUE.index(failure.kind or "same_args_retry")
    return soft, kind, not changes_state(failure.tool), len(failure.differences), failure.failed[0]


P = ParamSpec("P")
R = TypeVar("R")


class RuleLearners:
    """Learners by fixed rules; deterministic, linear in the number of a run's calls and turns."""

    async def analyse(self, run: StoredRun, level: AbstractionLevel | None = None) -> Analysis:
        """Returns the analysis of a run, see `explain`."""
        return await computed(run, explain, run, level)

    async def abstract(self, run: StoredRun, level: AbstractionLevel) -> ProcedureDraft | None:
        """Returns the script of a run, see `script`."""
        return await computed(run, script, run, level)

    async def revise(self, used: ProcedureDraft, run: StoredRun, analysis: Analysis) -> ProcedureDraft | None:
        """Returns the procedure with notes on its failing steps, see `revised`."""
        return await computed(run, revised, used, run, analysis)


async def computed(run: StoredRun, compute: Callable[P, R], *arguments: P.args, **named: P.kwargs) -> R:
    """Returns the result of a computation on a run, made on the event loop for a short run, else in a thread.

    For a short run, a thread would cost more than the computation.
    """
    if run.is_short:
        return compute(*arguments, **named)
    return await asyncio.to_thread(compute, *arguments, **named)
