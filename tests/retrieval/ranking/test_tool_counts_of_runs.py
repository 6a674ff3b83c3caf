"""What was done in each case, as counts of tools, or of steps where all cases used one tool."""

from types import SimpleNamespace

import numpy as np

from retrieval.ranking.tool_counts import AT_ONCE, ToolVectors, tool_counts, words_of


def run(*effects: str, plan: tuple[str, ...] = ()) -> SimpleNamespace:
    return SimpleNamespace(effects=list(effects), plan=list(plan))


def test_tools_are_counted_in_the_order_of_first_use():
    found = tool_counts([run("pay", "ship", "pay"), run(), run("cancel")])
    assert (found.items, found.are_tools) == (["pay", "ship", "cancel"], True)
    assert found.counts.tolist() == [[2, 1, 0], [0, 0, 0], [0, 0, 1]]


def test_where_all_used_one_tool_their_steps_are_counted_as_they_are_compared():
    found = tool_counts([run("sql", plan=("Add  a column",)), run("sql", plan=("add a COLUMN", "commit"))])
    assert (found.items, found.are_tools) == (["add a column", "commit"], False)
    assert found.counts.tolist() == [[1, 0], [1, 1]]


def test_nobody_did_nothing():
    assert tool_counts([]).counts.shape == (0, 1)


def test_vectors_are_asked_for_some_at_a_time_and_once():
    known = ToolVectors()
    known.want(tool_counts([run(*(f"tool_{number}" for number in range(AT_ONCE + 1)))]))
    first = known.wanted()
    known.learn({name: np.ones(2, np.float32) for name in first})
    assert (len(first), known.wanted()) == (AT_ONCE, [f"tool_{AT_ONCE}"])
    assert known.of(first[0], 2).tolist() == [1, 1]
    assert known.of(first[0], 3).tolist() == known.of("unheard_of", 3).tolist() == [0, 0, 0]


def test_the_oldest_of_too_many_vectors_are_forgotten():
    known = ToolVectors(capacity=2)
    for name in ("a", "b", "c"):
        known.learn({name: np.ones(1, np.float32)})
    assert [known.of(name, 1).tolist() for name in ("a", "b", "c")] == [[0], [1], [1]]


def test_a_tools_name_is_words_to_an_embedder():
    assert words_of("cancel_pending-order.v2") == "cancel pending order v2"
    assert not words_of("__")
