"""Parses a `memory_context` for the scripted agent: runs with their plans and outcomes."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

_CASE = re.compile(
    r"^\[(?P<place>\d+)\] Context: (?P<task>\".*\")\n"
    r"(?:    The same as \[(?P<same>\d+)\]|    Actions: (?P<actions>.*)\n    Outcome: (?P<outcome>.*))$",
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
    cases: dict[str, ToldCase] = {}
    for found in _CASE.finditer(text):
        place, task = int(found["place"]) - 1, json.loads(found["task"])
        if found["same"]:
            case = replace(cases[found["same"]], place=place, task=task)
        else:
            actions = json.loads(found["actions"]) if found["actions"].startswith("[") else ()
            case = ToldCase(place, task, actions, found["outcome"] in _WENT_WELL)
        cases[found["place"]] = case
        yield case
