"""Parses the texts of a memory for the scripted agent: runs with their plans and outcomes, and fixes of failures."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from retrieval.advice.text import DANGER, PLANS_BEGIN
from retrieval.patterns import read

_FORMS: dict[str, str] = read("app.demo.operator", "texts.toml")["told"]
_CASE, _CHANGE = re.compile(_FORMS["case"]), re.compile(_FORMS["change"])
_FIXES = re.compile(rf"What put it right: (?P<fixes>.*?)\.(?: {re.escape(PLANS_BEGIN)}.*)?$", re.DOTALL)
_JSON = json.JSONDecoder()
_PLAN = re.compile(r"; that run's plan: (?P<plan>\[.*\])\)")
_FIRST = re.compile(r"(?:sql|bash) `(?P<statement>[^`]*)`?")
_WENT_WELL = ("success", "failure (but it was judged to have gone well)")


@dataclass(frozen=True, slots=True)
class ParsedCase:
    """One run in a memory's text: its 0-based place there (the slate comes first), its actions and its outcome."""

    place: int
    task: str
    actions: Sequence[str]
    went_well: bool


def parse_cases(text: str) -> Iterator[ParsedCase]:
    """Yields the earlier runs that a `memory_context` quotes, in the order of the text."""
    cases: dict[str, ParsedCase] = {}
    for match in _CASE.finditer(text):
        place, task = int(match["place"]) - 1, json.loads(match["task"])
        if match["same"]:
            case = replace(cases[match["same"]], place=place, task=task)
        else:
            actions = json.loads(match["actions"]) if match["actions"].startswith("[") else ()
            case = ParsedCase(place, task, actions, match["outcome"] in _WENT_WELL)
        cases[match["place"]] = case
        yield case


@dataclass(frozen=True, slots=True)
class ParsedFix:
    """One fix in the text of advice.

    Attributes:
        plan: lines of the plan of its run; empty if the text has no plan.
        first: statements that came before the call that worked.
        changes: pieces of the failed call and what stood in their place; "" for none.
    """

    plan: Sequence[str]
    first: Sequence[str]
    changes: Sequence[tuple[str, str]]


def parse_fixes(text: str) -> list[ParsedFix]:
    """Returns the fixes in a text of advice, the best first."""
    match = _FIXES.search(text)
    fixes = []
    for fix in [] if match is None else match["fixes"].split(" Or: "):
        plan, pieces = _PLAN.search(fix), _CHANGE.finditer(_FIRST.sub("", fix))
        changes = [(each["old"] or each["gone"] or "", each["new"] or each["added"] or "") for each in pieces]
        fixes.append(ParsedFix(json.loads(plan["plan"]) if plan else (), _FIRST.findall(fix), changes))
    return fixes


def parse_plans(text: str) -> list[Sequence[str]]:
    """Returns the plans in a text of advice, the best first."""
    _, _, rest = text.partition(PLANS_BEGIN)
    plans: list[Sequence[str]] = []
    while rest.startswith("["):
        plan, end = _JSON.raw_decode(rest)
        plans.append(plan)
        rest = rest[end:].removeprefix(DANGER).removeprefix(". Or: ")
    return plans
