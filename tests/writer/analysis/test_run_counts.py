"""What is counted of a run's calls by their statuses alone."""

from hypothesis import given
from hypothesis import strategies as st

from writer.analysis.run_counts import RunCounts, counted_by_status

results = st.tuples(st.sampled_from(["find_order", "cancel_order", "pay"]), st.booleans())


@given(st.lists(results, max_size=12))
def test_failed_calls_change_nothing_and_the_last_call_of_each_tool_tells_whether_one_is_left_on_an_error(
    calls: list[tuple[str, bool]],
):
    counts = RunCounts.of(calls, [])
    assert counts.error_count == [failed for _, failed in calls].count(True)
    assert counts.effects == [tool for tool, failed in calls if not failed and tool != "find_order"]
    last = {tool: failed for tool, failed in calls}  # noqa: C416 - the later call of a tool takes the earlier one's place
    assert counts.unresolved == (True in last.values())


def test_a_run_without_calls_has_the_steps_of_its_plan_as_effects():
    assert counted_by_status([], ["look", "pay"]) == RunCounts(0, ["look", "pay"], unresolved=False)
