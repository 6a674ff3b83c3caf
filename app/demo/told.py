"""What a scripted agent reads in a `memory_context`: which runs went well by what, and which did not."""

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
    """One run as the text tells it: its place from 0 on, the slate's first, what it did, and whether that went well."""

    place: int
    task: str
    actions: Sequence[str]
    went_well: bool


def told_cases(text: str) -> Iterator[ToldCase]:
    """Yields the runs that a `memory_context` tells of, in its order."""
    for found in _CASE.finditer(text):
        actions = json.loads(found["actions"]) if found["actions"].startswith("[") else ()
        yield ToldCase(int(found["place"]) - 1, json.loads(found["task"]), actions, found["outcome"] in _WENT_WELL)
