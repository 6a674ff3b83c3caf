"""Compares two versions of a procedure: its fields by name, its steps by place."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any, Literal, Protocol

COMPARED = ("kind", "origin", "level", "task_type", "trigger", "domain")
"""Columns of a version that are compared in addition to the fields of its record."""
STEPS = "learned_procedure_steps"


class Version(Protocol):
    """A version of a procedure; it has an attribute for each name in COMPARED."""

    @property
    def record(self) -> dict[str, Any]:
        """The procedure's record, as a JSON object."""


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field that differs between two versions; in a version without the field its value is None."""

    field: str
    before: object
    after: object


@dataclass(frozen=True, slots=True)
class StepChange:
    """Consecutive steps that differ between two versions.

    Attributes:
        place: place of the first of these steps in the earlier version, from 1; for added steps, where they were added.
    """

    change: Literal["added", "removed", "changed"]
    place: int
    before: list[str]
    after: list[str]


@dataclass(frozen=True, slots=True)
class VersionChanges:
    """All fields and steps in which the later of two versions of a procedure differs from the earlier one."""

    fields: list[FieldChange] = field(default_factory=list)
    steps: list[StepChange] = field(default_factory=list)


_CHANGES: Mapping[str, Literal["added", "removed", "changed"]] = {
    "insert": "added",
    "delete": "removed",
    "replace": "changed",
}


def difference(before: Version, after: Version) -> VersionChanges:
    """Returns the changes from one version of a procedure to the other: fields in their order, steps by place."""
    old, new = _fields(before), _fields(after)
    names = [name for name in dict.fromkeys([*old, *new]) if old.get(name) != new.get(name)]
    earlier, later = before.record[STEPS], after.record[STEPS]
    codes = SequenceMatcher(None, earlier, later, autojunk=False).get_opcodes()
    return VersionChanges(
        [FieldChange(name, old.get(name), new.get(name)) for name in names],
        [StepChange(_CHANGES[tag], i + 1, earlier[i:j], later[k:m]) for tag, i, j, k, m in codes if tag != "equal"],
    )


def _fields(version: Version) -> dict[str, object]:
    record = {name: value for name, value in version.record.items() if name != STEPS}
    return {name: getattr(version, name) for name in COMPARED} | record
