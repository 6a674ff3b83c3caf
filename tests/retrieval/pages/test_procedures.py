"""How two versions of a procedure differ: fields by name, steps by place."""

from typing import Any

from retrieval.pages.procedures import COMPARED, difference


def version(steps: list[str], **changed: Any) -> dict[str, Any]:
    own = {name: name for name in COMPARED} | {name: value for name, value in changed.items() if name in COMPARED}
    record = {name: value for name, value in changed.items() if name not in COMPARED}
    return {**own, "record": {"learned_procedure_steps": steps, **record}}


def test_a_version_does_not_differ_from_itself():
    assert difference(version(["a", "b"]), version(["a", "b"])) == {"fields": [], "steps": []}


def test_fields_that_differ_come_by_name_and_what_one_lacks_is_none():
    found = difference(version([], trigger="old", cause="why"), version([], trigger="new"))
    assert [tuple(each.values()) for each in found["fields"]] == [("trigger", "old", "new"), ("cause", "why", None)]


def test_steps_that_differ_come_by_place():
    found = difference(version(["a", "b", "c", "d"]), version(["a", "x", "c", "d", "e"]))
    assert found["steps"] == [
        {"change": "changed", "place": 2, "before": ["b"], "after": ["x"]},
        {"change": "added", "place": 5, "before": [], "after": ["e"]},
    ]
    (removed,) = difference(version(["a", "b"]), version(["b"]))["steps"]
    assert removed == {"change": "removed", "place": 1, "before": ["a"], "after": []}
