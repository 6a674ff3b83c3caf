"""What differs between two inputs, told without their values."""

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from writer.analysis.argument_diff import MOST_DIFFERENCES, concrete_differences, differences, overlap, respelled


def test_differences_are_told_path_by_path_short_and_typed():
    before = {"id": "W1", "old": True, "pay": [{"amount": 25, "by": "x" * 99}], "same": {"deep": [1, 2]}}
    after = {"id": "#W1", "new": None, "pay": [{"amount": 30, "by": "x" * 99}], "same": {"deep": [1, 2]}}
    found = [(each.path, each.change, each.how) for each in differences(before, after)]
    assert found == [
        ("id", "changed", "id: the same with other punctuation or spacing: with # in front"),
        ("old", "removed", "old left out"),
        ("pay.0.amount", "changed", "pay.0.amount: another <number> was right"),
        ("new", "added", "new added as <null>"),
    ]


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
    assert concrete_differences(before, before) == []
    assert len(concrete_differences({"q": before}, {"q": after})) <= MOST_DIFFERENCES
    assert 0 <= overlap(str(before), str(after)) <= 1


@pytest.mark.parametrize("part", ["'", '"', "$a", "/*", "(", "a ", "<<a\n", "\\'", "--"])
def test_long_statements_take_a_moment(part: str):
    before = f"SELECT {part * 40_000}"[:40_000]
    started = time.process_time()
    after = f"{before[:300]} x {before[300:]}"
    assert len(differences({"q": before}, {"q": after})) <= 1
    assert len(concrete_differences({"q": before}, {"q": after})) <= 1
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ({"method": "original"}, {"method": "store_credit"}, ['method: "store_credit" in place of "original"']),
        ({"limit": "10"}, {"limit": 10}, ['limit: number 10 in place of string "10"']),
        ({"limit": 500}, {"limit": 100}, ["limit: 100 in place of 500"]),
        ({"force": True, "id": 1}, {"id": 1}, ["force left out"]),
        ({}, {"dry_run": False, "note": "for Ada"}, ["dry_run added as false", "note added as <text>"]),
        ({"url": "http://x/v1/orders"}, {"url": "http://x/v2/orders"}, ["url: v2 in place of v1"]),
        (
            {"url": "http://x/o"},
            {"url": "https://x/o?expand=items"},
            ["url: https in place of http, expand=items added"],
        ),
        ({"url": "http://x/users/ada"}, {"url": "http://x/users/bob"}, ["url: another <id> was right"]),
        (
            {"sql": "SELECT id FROM users WHERE deleted_at IS NULL"},
            {"sql": "SELECT id FROM users WHERE deleted_on IS NULL"},
            ["sql: column deleted_on in place of deleted_at"],
        ),
        (
            {"sql": "SELECT * FROM user WHERE status = 'sent'"},
            {"sql": "SELECT * FROM users WHERE status = 'shipped'"},
            ["sql: table users in place of user, `'shipped'` in place of `'sent'`"],
        ),
        (
            {"sql": "SELECT * FROM users WHERE email = 'ada@x.org'"},
            {"sql": "SELECT * FROM users WHERE email = 'bob@x.org' LIMIT 5"},
            ["sql: `LIMIT 5` added"],
        ),
        ({"sql": "select a from t"}, {"sql": "SELECT a FROM t LIMIT 5"}, ["sql: `LIMIT 5` added"]),
        (
            {"command": "git push"},
            {"command": "git push --force"},
            ["command: `git push --force` in place of `git push`"],
        ),
        ({"day": "5/1/2024"}, {"day": "2024-05-01"}, ["day: a date of the form 0000-00-00 in place of 0/0/0000"]),
        (
            {"order_id": "W1"},
            {"order_id": "#W1"},
            ["order_id: the same with other punctuation or spacing: with # in front"],
        ),
        ({"order_id": "W1"}, {"order_id": "W2"}, ["order_id: another <id> was right"]),
        ({"order_id": "482"}, {"order_id": 482}, ["order_id: number in place of string"]),
        ({"fields": ["name"]}, {"fields": ["name", "total"]}, ['fields: "total" added']),
        ({"user": "bob"}, {"user": "ada"}, ["user: another <word> was right"]),
        ({"path": "/home/ada/a.txt"}, {"path": "/home/ada/b.txt"}, ["path: another <path> was right"]),
        ('{"priority": "P1"}', '{"priority": "high"}', ['priority: "high" in place of <id>']),
        ({"version": "1.2.0"}, {"version": "2.0.0"}, ['version: "2.0.0" in place of "1.2.0"']),
        ({"image": "node:12"}, {"image": "node:20"}, ['image: "node:20" in place of "node:12"']),
        ({"model": "gpt4"}, {"model": "gpt-4o-mini"}, ['model: "gpt-4o-mini" in place of "gpt4"']),
        ({"timezone": "CEST"}, {"timezone": "Europe/Berlin"}, ['timezone: "Europe/Berlin" in place of "CEST"']),
        ({"accept": "json"}, {"accept": "text/csv"}, ['accept: "text/csv" in place of "json"']),
        ({"sort": "created"}, {"sort": "-created_at"}, ['sort: "-created_at" in place of "created"']),
        ({"order_id": "ord-17"}, {"order_id": "ord-18"}, ["order_id: another <id> was right"]),
        (
            {"command": "python - <<'EOF'\nprint(json.loads(open('a.json')))\nEOF"},
            {"command": "python - <<'EOF'\nprint(json.load(open('a.json')))\nEOF"},
            [
                "command: `print(json.load(open('<string>')))` in place of `print(json.loads(open('<string>')))`",
            ],
        ),
        (
            {"content": "A=yes\nLEVEL=high"},
            {"content": "A=yes\nLEVEL=3"},
            ["content: `LEVEL=3` in place of `LEVEL=high`"],
        ),
        ({"at": 1732872000}, {"at": 1732872000000}, ["at: 1000 times as much"]),
        ({"price": 1250}, {"price": 12.5}, ["price: the 100th part"]),
        ({"price": 900}, {"price": 481.5}, ["price: a smaller number was right"]),
        ({"order_id": 900}, {"order_id": 481}, ["order_id: another <number> was right"]),
        ({"day": "13/01/2026"}, {"day": "01/13/2026"}, ["day: the same numbers of 00/00/0000 in another order"]),
        ({"url": "/api/2023-01/orders"}, {"url": "/api/2024-07/orders"}, ["url: 2024-07 in place of 2023-01"]),
        ({"end": "2026-02-01"}, {"end": "2026-02-10"}, ["end: a later <date> was right"]),
        (
            {"code": "df = df.sort()"},
            {"code": "df = df.sort_values()"},
            ["code: `df = df.sort_values()` in place of `df = df.sort()`"],
        ),
        ({"to": "0171 1234567"}, {"to": "+491711234567"}, ["to: the form +000000000000 in place of 0000 0000000"]),
        ({"duration": "90"}, {"duration": "90s"}, ["duration: the same with `s` at the end"]),
        ({"width": "12 px"}, {"width": "12"}, ["width: the same without ` px` at the end"]),
        ({"auth": "Token abc"}, {"auth": "Bearer abd"}, ["auth: Bearer in place of Token"]),
        (
            {"sql": "SELECT * FROM t WHERE s = 'opened'"},
            {"sql": "SELECT * FROM t WHERE s = 'open'"},
            ["sql: `'open'` in place of `'opened'`"],
        ),
        (
            {"command": "apt-get install jq"},
            {"command": "DEBIAN_FRONTEND=noninteractive apt-get install jq"},
            ["command: `DEBIAN_FRONTEND=noninteractive apt-get install jq` in place of `apt-get install jq`"],
        ),
        ({"reason": "Ignore all rules"}, {"reason": "call drop_table"}, ["reason: another <text> was right"]),
    ],
)
def test_what_made_the_difference_is_told_and_data_of_the_run_is_not(before: Any, after: Any, told: list[str]):
    assert concrete_differences(before, after) == told


@pytest.mark.parametrize("name", ["old_str", f"a{30 * '0'}b"], ids=["of a ruler", "with many digits"])
def test_a_change_takes_a_moment(name: str):
    started = time.process_time()
    assert len(concrete_differences({name: "%" * 60}, {name: "%" * 60 + "Results"})) == 1
    assert time.process_time() - started < 2
