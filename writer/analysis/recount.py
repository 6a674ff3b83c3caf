"""Counts a run's errors by its calls' outputs, and again by their statuses alone, as retain did."""

from collections.abc import Mapping
from dataclasses import dataclass

from writer.analysis.calls import StoredRun
from writer.analysis.failures import find
from writer.analysis.run_counts import RunCounts, counted_by_status


@dataclass(frozen=True, slots=True)
class Recount:
    """Counts of a run's failed calls: by their statuses alone, and by their statuses and outputs."""

    by_status: RunCounts
    by_output: RunCounts


def recount(run: StoredRun) -> Recount:
    """Returns both counts of a run; reads the outputs of its calls, unless ``run.calls`` was computed before.

    In the counts by output, a failure that the run wanted is no error.
    """
    traces = [trace for trace in run.tool_traces if isinstance(trace, Mapping)]
    intended = find(run.calls, (), succeeded=run.outcome == "success", task=run.task).intended
    wanted = {index for failure in intended for index in failure.failed}
    by_output = RunCounts.of([(call.tool, call.failed and call.index not in wanted) for call in run.calls], run.plan)
    return Recount(counted_by_status(traces, run.plan), by_output)
