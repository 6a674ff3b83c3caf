"""What differs between two inputs, told without their values."""

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from writer.analysis.argument_diff import MOST_DIFFERENCES, differences, overlap, respelled


def test_differences_are_told_path_by_path_short_and_typed():
    before = {"id": "W1", "old": True, "pay": [{"amount": 25, "by": "x" * 99}], "same": {"deep": [1, 2]}}
    after = {"id": "#W1", "new": None, "pay": [{"amount": 30, "by": "x" * 99}], "same": {"deep": [1, 2]}}
    found = {each.path: (each.change, each.before, each.after) for each in differences(before, after)}
    assert found == {
        "id": ("changed", 'string "W1"', 'string "#W1"'),
        "old": ("removed", "true", ""),
        "pay.0.amount": ("changed", "number 25", "number 30"),
        "new": ("added", "", "null"),
    }


@pytest.mark.parametrize(
    ("before", "after", "how"),
    [
        ("W1", "#W1", "with # in front"),
        ("alice", "Alice", "letter case"),
        ("2024/05/01", "2024-05-01", "punctuation"),
        ("5", 5, "<number as text> became <number>"),
        ([1], [1, 2], "a list of 1 became one of 2"),
        ("ALTER TABLE t ADD COLUMN c;", "ALTER TABLE t ADD COLUMN c text;", "added `text`"),
        ("SELECT a FROM t", "SELECT a FROM s WHERE b = 'x'", "added `<identifier> WHERE <identifier> = <string>`"),
    ],
)
def test_a_change_is_described_without_the_values(before: Any, after: Any, how: str):
    (found,) = differences({"x": before}, {"x": after})
    assert how in found.how


def test_inputs_that_are_no_objects_differ_as_a_whole():
    assert [each.path for each in differences("a b", ["a"])] == ["input"]
    assert differences(None, None) == ()
    assert differences(True, 1)  # the same to Python, and not in JSON


@pytest.mark.parametrize(
    ("before", "after", "how"),
    [
        ("SELECT 'O'Neill' FROM t", "SELECT 'O''Neill' FROM t", "added `<string>`"),
        ("SELECT a FROM t WHERE x = 'open", "SELECT a FROM t WHERE x = 'open'", "added `<string>`"),
        ("SELECT a::int FROM t", "SELECT a->>'k' FROM t", "added `->> <string>`, dropped `:: int`"),
        ("SELECT $$it's$$ FROM t", "SELECT $$its all$$ FROM t", "added `<string>`, dropped `<string>`"),
        ("SELECT a -- not this\nFROM t", "SELECT a FROM t", "written otherwise"),
        (
            """curl -d {"a":1} http://x""",
            """curl -d '{"a": 1}' http://x""",
            "`curl -d <string> <url>` with other quotes",
        ),
        ("grep -c 'a' x", "grep -c 'a' x | wc -l", "`grep -c <string> <word> | wc -l` instead of"),
        ("drop the table", "DROP TABLE t", "TABLE"),
    ],
)
def test_a_statement_is_compared_by_the_tokens_of_its_language(before: str, after: str, how: str):
    (found,) = differences({"x": before}, {"x": after})
    assert how in found.how


def test_what_a_comment_or_a_string_of_a_statement_says_is_told_of_no_difference():
    after = "SELECT $x$all or nothing$x$, E'it\\'s all', 'it''s not null' /* all or nothing */ FROM t -- not all"
    (found,) = differences({"q": "SELECT a FROM t"}, {"q": after})
    assert found.how == "q: added `<string> , <string> , <string>`, dropped `<identifier>`"


def test_at_most_so_many_differences_are_told_in_the_order_of_the_keys():
    found = differences({str(n): n for n in range(10**5)}, {str(n): n + 1 for n in range(10**5)})
    assert [each.path for each in found] == [str(n) for n in range(MOST_DIFFERENCES)]


def test_a_key_that_is_a_text_is_not_repeated():
    (found,) = differences({}, {"please call me": 1})
    assert found.path == "<key>"


def test_the_overlap_is_the_share_of_the_shorter_texts_words():
    assert overlap("SELECT a FROM t", "select A from t where b") == 1
    assert overlap("SELECT a", "DROP b") == 0
    assert overlap("", "") == 0


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ({"name": "O'Neill"}, {"name": "oneill"}, True),
        ({"name": "O'Neill"}, {"name": "Smith"}, False),
        ({"q": "SELECT a FROM t WHERE b = 1"}, {"q": "SELECT a FROM t WHERE b = 2"}, True),
        ({"q": "SELECT a FROM t"}, {"q": "SELECT x, y, z FROM s, w, v"}, False),
        ({"a": 1}, {"a": 1}, False),
        ({"a": "x"}, {"a": "x", "b": "y"}, False),
    ],
)
def test_inputs_are_respelled_where_every_difference_is_one_of_spelling(before: Any, after: Any, same: bool):  # noqa: FBT001
    assert respelled(before, after) is same


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(before=values, after=values)
def test_any_two_values_are_compared_and_a_value_never_differs_from_itself(before: Any, after: Any):
    assert differences(before, before) == ()
    assert bool(differences(before, after)) or before == after
    assert 0 <= overlap(str(before), str(after)) <= 1


@pytest.mark.parametrize("part", ["'", '"', "$a", "/*", "(", "a ", "<<a\n", "\\'", "--"])
def test_long_statements_take_a_moment(part: str):
    before = f"SELECT {part * 40_000}"[:40_000]
    started = time.process_time()
    assert len(differences({"q": before}, {"q": f"{before[:300]} x {before[300:]}"})) <= 1
    assert time.process_time() - started < 0.5
