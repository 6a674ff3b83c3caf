"""How two versions of a procedure differ: fields by name, steps by place."""

from types import SimpleNamespace
from typing import Any

from retrieval.procedures.compare import COMPARED, FieldChange, StepChange, difference


def version(steps: list[str], **changed: Any) -> SimpleNamespace:
    own = {name: name for name in COMPARED} | {name: value for name, value in changed.items() if name in COMPARED}
    record = {name: value for name, value in changed.items() if name not in COMPARED}
    return SimpleNamespace(**own, record={"learned_procedure_steps": steps, **record})


def test_a_version_does_not_differ_from_itself():
    same = difference(version(["a", "b"]), version(["a", "b"]))
    assert (same.fields, same.steps) == ([], [])


def test_fields_that_differ_come_by_name_and_what_one_lacks_is_none():
    found = difference(version([], trigger="old", cause="why"), version([], trigger="new"))
    assert found.fields == [FieldChange("trigger", "old", "new"), FieldChange("cause", "why", None)]


def test_steps_that_differ_come_by_place():
    found = difference(version(["a", "b", "c", "d"]), version(["a", "x", "c", "d", "e"]))
    assert found.steps == [StepChange("changed", 2, ["b"], ["x"]), StepChange("added", 5, [], ["e"])]
    assert difference(version(["a", "b"]), version(["b"])).steps == [StepChange("removed", 1, ["a"], [])]
