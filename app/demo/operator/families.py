"""Families of database tasks, read from ``families.toml``: each has one way to fail, and a goal to confirm.

The same seed always draws the same tasks from them.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter

from retrieval.patterns import read


@dataclass(frozen=True)
class Family:
    """One kind of task. `solution` is the chain of repairs that reaches the goal; the operator never sees it."""

    key: str
    sqlstate: str
    naive: str
    goal: str
    solution: tuple[str, ...]
    wordings: tuple[str, ...]
    extra: str = ""
    first: tuple[Mapping[str, str], ...] = field(default=(), repr=False)  # names of the first variations


_READ = read("app.demo.operator", "families.toml")
NAMES: dict[str, Any] = _READ["names"]
"""Tables that every task begins with, and the words that fill the holes in its text."""
FAMILIES = TypeAdapter(tuple[Family, ...]).validate_python(_READ["families"])
FAMILY_BY_KEY = {family.key: family for family in FAMILIES}
CONVENTIONS = {
    each["key"]: TypeAdapter(tuple[Family, Family]).validate_python([each | way for way in each["ways"]])
    for each in _READ["conventions"]
}
"""Kinds of tasks with two solutions, by key; each house requires one of them, and can change to the other."""
CLOSED_BOOKS = TypeAdapter(Family).validate_python(_READ["closed_books"])


def houses_ways(seed: int, *, changed: bool) -> list[Family]:
    """Returns the families with the solutions that the house of this seed requires, before or after its change."""
    rng = random.Random(f"{seed}:conventions")
    firsts = [rng.randrange(2) for _ in CONVENTIONS]
    return [ways[first ^ changed] for ways, first in zip(CONVENTIONS.values(), firsts, strict=True)]


@dataclass(frozen=True)
class Task:
    """One task: `text` and `naive` are for the operator, the rest is known only to the harness."""

    id: str
    family: str
    text: str
    naive: str
    setup: str
    goal: str


def draw(family: Family, seed: int, variation: int) -> Task:
    """Returns the task of a family for this seed and variation."""
    rng = random.Random(f"{seed}:{family.key}:{variation}")
    (t, one), (p, pone) = rng.choice(NAMES["things"]), rng.choice(NAMES["parents"])
    names = {key: rng.choice(pool) for key, pool in NAMES["pools"].items()}
    names |= {"t": t, "one": one, "p": p, "pone": pone, "T": t.capitalize(), "N": f"{names['n']}Total"}
    names |= {"big": str(rng.randint(100, 999)), "small": str(rng.randint(1, 3)), "a": "a"}
    names |= {"code": f"{rng.choice('KLMNPQ')}{rng.randint(10, 99)}"}
    wording = rng.choice(family.wordings)
    if variation < len(family.first):
        names |= family.first[variation]
        wording = family.wordings[0]
    return Task(
        id=f"{family.key}-{variation}",
        family=family.key,
        text=wording.format_map(names),
        naive=family.naive.format_map(names),
        setup=(NAMES["base"] + family.extra).format_map(names),
        goal=family.goal.format_map(names),
    )
