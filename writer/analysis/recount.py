"""The counts of a run once its outputs were looked at, beside those that retain made of the statuses alone."""

from collections.abc import Mapping
from dataclasses import dataclass

from writer.analysis.calls import StoredRun
from writer.analysis.run_counts import RunCounts, counted_by_status


@dataclass(frozen=True, slots=True)
class Recount:
    """The counts of a run as retain made them, by the statuses alone, and as they are with the outputs looked at."""

    by_status: RunCounts
    by_output: RunCounts


def recount(run: StoredRun) -> Recount:
    """Returns both counts of a run that has calls; as slow as its outputs are long, if nobody looked at them yet."""
    traces = [trace for trace in run.tool_traces if isinstance(trace, Mapping)]
    by_output = RunCounts.of([(call.tool, call.failed) for call in run.calls], run.plan)
    return Recount(counted_by_status(traces, run.plan), by_output)
