"""The learners by fixed rules, which need no language model."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from retrieval.tables.kinds import AbstractionLevel
from writer.analysis.calls import StoredRun
from writer.procedures.ports import Analysis, ProcedureDraft
from writer.procedures.rules.analyst import explain
from writer.procedures.rules.revise import revised
from writer.procedures.rules.script import script

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
