"""Compares two versions of a procedure: its fields by name, its steps by place."""

from collections.abc import Mapping
from difflib import SequenceMatcher
from typing import Any

COMPARED = ("kind", "origin", "level", "task_type", "trigger", "domain")
"""Columns of a version that are compared in addition to the fields of its record."""
STEPS = "learned_procedure_steps"


_CHANGES = {"insert": "added", "delete": "removed", "replace": "changed"}


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, list[dict[str, object]]]:
    """Returns the changes from one version of a procedure to another: ``fields`` in their order, ``steps`` by place.

    The value of a field is None in a version without the field. A change of consecutive steps has the place of the
    first one in the earlier version, from 1; for added steps, the place at which they were added.
    """
    old, new = _fields(before), _fields(after)
    names = [name for name in dict.fromkeys([*old, *new]) if old.get(name) != new.get(name)]
    earlier, later = before["record"][STEPS], after["record"][STEPS]
    codes = SequenceMatcher(None, earlier, later, autojunk=False).get_opcodes()
    steps = [
        {"change": _CHANGES[tag], "place": i + 1, "before": earlier[i:j], "after": later[k:m]}
        for tag, i, j, k, m in codes
        if tag != "equal"
    ]
    return {
        "fields": [{"field": name, "before": old.get(name), "after": new.get(name)} for name in names],
        "steps": steps,
    }


def _fields(version: Mapping[str, Any]) -> dict[str, object]:
    record = {name: value for name, value in version["record"].items() if name != STEPS}
    return {name: version[name] for name in COMPARED} | record
