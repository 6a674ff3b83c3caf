"""Which calls changed something: those of tools that do more than look something up, and succeeded."""

import pytest

from writer.analysis.run_counts import MOST_EFFECTS, RunCounts
from writer.analysis.state_changes import changes_state


@pytest.mark.parametrize("tool", ["get_order", "find_user", "list_flights", "search_direct", "calculate", "think"])
def test_a_tool_that_looks_something_up_changes_nothing(tool: str):
    assert not changes_state(tool)


@pytest.mark.parametrize(
    "tool", ["Read", "Grep", "readFile", "fs:read", "files.search", "inspect", "github/list_issues"]
)
def test_it_is_told_by_the_first_word_of_its_name_however_that_is_written(tool: str):
    assert not changes_state(tool)


@pytest.mark.parametrize(
    "tool",
    ["mail_search", "contacts-find", "issueGet", "healthCheck", "slack_list_channels", "mcp__jira__search_issues"],
)
def test_the_verb_of_a_lookup_may_stand_after_a_noun(tool: str):
    assert not changes_state(tool)


@pytest.mark.parametrize(
    "tool",
    [
        "mark_as_read",
        "create_list",
        "order_list_update",
        "mailing_list_join",
        "switch_view",
        "saved_search_delete",
        "void_check",
        "approve_list",
        "notify_list",
    ],
)
def test_a_noun_spelt_like_a_lookup_or_a_word_of_a_change_tells_a_change(tool: str):
    assert changes_state(tool)


@pytest.mark.parametrize(
    "tool", ["cancel_order", "sql", "thinker", "calculate_and_book", "getaway", "Write", "writeFile", "sheet", ""]
)
def test_any_other_tool_may_change_something(tool: str):
    assert changes_state(tool)


def test_effects_are_the_changes_that_succeeded_in_order_and_no_more_than_so_many():
    calls = [("get_order", False), ("pay", True), ("pay", False), ("ship", False)]
    assert RunCounts.of(calls, ["a"]).effects == ["pay", "ship"]
    assert RunCounts.of([("pay", False)] * 500, []).effects == ["pay"] * MOST_EFFECTS
    assert RunCounts.of([("pay", True)], ["a"]).effects == []
