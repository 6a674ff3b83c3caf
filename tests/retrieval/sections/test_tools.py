"""The lines about tools in a prompt."""

from types import SimpleNamespace

from retrieval.sections.tools import lines


def trouble(tool: str, calls: int, errors: int, cause: str | None = None, fix: str | None = None) -> SimpleNamespace:
    return SimpleNamespace(tool=tool, calls=calls, errors=errors, cause=cause, fix=fix)


def test_each_tool_has_one_line_with_its_rate_and_its_fixes_in_order():
    rows = [
        trouble("pay", 4, 1, "a missing argument", "it was added"),
        trouble("pay", 4, 1, "a timeout", "it was called again"),
        trouble("ship", 1, 1),
    ]
    assert list(lines(rows)) == [
        "Tool pay: 4 calls, 25% errors; after a missing argument, it was added; after a timeout, it was called again",
        "Tool ship: 1 call, 100% errors",
    ]


def test_without_trouble_there_is_no_line():
    assert list(lines([])) == []
