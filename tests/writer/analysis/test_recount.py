"""What is counted of a run's calls by their statuses, beside what their outputs tell."""

from tests.writer.runs import FAILED, call
from writer.analysis.calls import StoredRun
from writer.analysis.recount import recount
from writer.analysis.run_counts import RunCounts, counted_by_status


def test_an_error_that_only_the_output_tells_is_missed_by_the_statuses_and_found_by_the_outputs():
    traces = [call("pay", 1, FAILED), call("pay", 2), call("cancel_order", 3, FAILED)]
    found = recount(StoredRun("pay", "success", traces))
    assert found.by_status == RunCounts(0, ["pay", "pay", "cancel_order"], unresolved=False)
    assert found.by_output == RunCounts(2, ["pay"], unresolved=True)


def test_where_statuses_tell_everything_both_counts_agree():
    traces = [call("pay", 1, FAILED, "error"), call("pay", 2)]
    found = recount(StoredRun("pay", "success", traces))
    assert found.by_status == found.by_output == counted_by_status(traces, [])
