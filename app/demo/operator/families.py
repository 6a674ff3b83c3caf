"""Families of database tasks, read from ``families.toml``: each has one way to fail, and a goal to confirm."""

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
