"""Tasks drawn from the families; the same seed always gives the same tasks."""

import random
from dataclasses import dataclass

from app.demo.operator.families import NAMES, Family


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
