"""Calls that change something, and calls that only look something up."""

import pytest

from tests.writer.runs import call
from writer.analysis.call_changes import changes, opens_page
from writer.analysis.calls import Call, calls_in


def ran(line: str) -> Call:
    (one,) = calls_in([call("shell", {"command": line})])
    return one


@pytest.mark.parametrize(
    "line",
    [
        "ls -la && git status",
        "cat a | grep b",
        "git branch -a",
        "docker ps",
        "find . -name b",
        "pytest --version",
        "sed -n 1,20p app.py",
        "ssh web uptime",
        "ssh web 'cd /srv && ls'",
        "docker exec -it db psql -c 'SELECT 1'",
        "curl -s http://web/health",
        "cd app && ls | sort | head -5",
        "find . -name '*.py' | xargs grep -n total",
    ],
)
def test_a_line_that_only_shows_what_is_there_changes_nothing(line: str):
    assert not changes(ran(line))


@pytest.mark.parametrize(
    "line",
    [
        "make",
        "git branch -d old",
        "find . -name b -delete",
        "pytest --version; rm a",
        "cat a | xargs rm",
        "sed -i s/a/b/ app.py",
        "sort -o names names",
        "ssh web systemctl restart app",
        "helm upgrade app chart --version 1.2",
        "docker exec db psql -c 'DELETE FROM orders'",
        "curl -X DELETE http://web/orders/1",
        "journalctl --vacuum-size=100M",
        "ls > files",
        "echo a >> notes",
    ],
)
def test_a_line_with_one_command_that_does_more_changes_something(line: str):
    assert changes(ran(line))


@pytest.mark.parametrize(
    ("statement", "does"),
    [
        ("SELECT * FROM orders FOR UPDATE", False),
        ("WITH late AS (SELECT 1) SELECT * FROM late", False),
        ("EXPLAIN DELETE FROM orders", False),
        ("WITH gone AS (DELETE FROM orders RETURNING *) SELECT count(*) FROM gone", True),
        ("EXPLAIN (ANALYZE) UPDATE orders SET late = true", True),
        ("SELECT setval('orders_id_seq', 9)", True),
    ],
)
def test_a_statement_that_begins_like_a_query_may_change_rows(statement: str, does: bool):  # noqa: FBT001
    (statement_call,) = calls_in([call("sql", {"query": statement})])
    assert changes(statement_call) is does


@pytest.mark.parametrize(
    ("tool", "url", "opens"),
    [
        ("mcp__playwright__browser_navigate", "https://shop.example", True),
        ("page.goto", "about:blank", True),
        ("openUrl", "http://shop.example", True),
        ("navigate_to", "the kitchen", False),
        ("open_ticket", "https://shop.example", False),
    ],
)
def test_a_call_that_only_opens_a_page_has_an_address(tool: str, url: str, opens: bool):  # noqa: FBT001
    (one,) = calls_in([call(tool, {"url": url})])
    assert opens_page(one) is opens
