"""Parses a `memory_context` for the scripted agent: runs with their plans and outcomes."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_CASE = re.compile(
    r"^\[(?P<place>\d+)\] Context: (?P<task>\".*\")\n    Actions: (?P<actions>.*)\n    Outcome: (?P<outcome>.*)$",
    re.MULTILINE,
)
_WENT_WELL = ("success", "failure (but it was judged to have gone well)")


@dataclass(frozen=True, slots=True)
class ToldCase:
    """One run in the text: its 0-based place, the slate first, its actions and its outcome."""

    place: int
    task: str
    actions: Sequence[str]
    went_well: bool


def told_cases(text: str) -> Iterator[ToldCase]:
    """Yields the runs in a `memory_context`, in order."""
    for found in _CASE.finditer(text):
        actions = json.loads(found["actions"]) if found["actions"].startswith("[") else ()
        yield ToldCase(int(found["place"]) - 1, json.loads(found["task"]), actions, found["outcome"] in _WENT_WELL)
