"""What is counted of a run's calls by their statuses, beside what their outputs tell."""

import pytest

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


@pytest.mark.parametrize(
    "task",
    ["Reproduce the 500 of the export", "Check that a guest is rejected", "The call should fail", "prove it errors"],
)
def test_a_failure_that_the_task_asked_for_is_none_and_one_that_it_did_not_is_one(task: str):
    traces = [call("http", {"url": "/x"}, "HTTP 500", "error")]
    for asked, outcome, unresolved in (
        (task, "success", False),
        (task, "failure", True),
        ("Export it", "success", True),
    ):
        found = recount(StoredRun(asked, outcome, traces))
        assert (found.by_output.unresolved, found.by_output.error_count) == (unresolved, int(unresolved))


def test_an_error_that_the_run_met_again_before_it_succeeded_is_none():
    failing = call("http", {"url": "/x"}, "HTTP 500", "error")
    found = recount(StoredRun("Find the cause of the 500", "success", [failing, call("read_log"), failing]))
    assert not found.by_output.unresolved
    assert recount(StoredRun("Find the cause", "success", [failing, failing])).by_output.unresolved


@pytest.mark.parametrize(
    "task", ["Fix the error of the export", "Check the error log", "Make sure the order is not rejected", "Debug it"]
)
def test_a_task_about_an_error_asks_for_none(task: str):
    assert recount(StoredRun(task, "success", [call("http", 1, "HTTP 500", "error")])).by_output.unresolved
