"""The house that the demo's operator works for: its tasks, its conventions, and the runs planted in memory.

Similar text is not enough to solve its tasks: some read alike but need different repairs. For others no error shows
which solution the house requires, and halfway it requires the other one. Some have no solution. A forger retains runs
that report false success.
"""

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from app.demo.memory import AgentRun, Trace
from app.demo.operator.families import CLOSED_BOOKS, FAMILIES, FAMILY_BY_KEY, Family, Task, draw, houses_ways
from app.demo.operator.operator import WORKED
from app.demo.operator.repairs import REPAIRS

READ_ALIKE = ("mixed_case_table", "other_schema", "double_quoted_text", "value_missing", "sequence_behind")
"""Families that share their wording or error with another of these."""
OWN_WAY = ("children_left", "nulls_left", "some_rows_exist", "row_exists", "duplicates_left")
"""Families that the house replaces by its conventions."""
OTHERS = 4
"""Number of families that a house draws besides READ_ALIKE and its conventions."""
PLANTED = 0.05
"""Number of planted runs as a share of the tasks."""
USELESS = ("raise_timeouts", "lock_first", "analyze_first", "retry", "outside_transaction", "if_exists")
"""Useless repairs that the planted runs name as the solution."""


@dataclass(frozen=True, slots=True)
class House:
    """A stream of tasks; the same seed gives the same house."""

    seed: int
    length: int

    def tasks(self) -> list[Task]:
        """Returns the tasks in order; the first is always of the first family of ``FAMILIES``."""
        seen: Counter[str] = Counter()
        drawn = []
        for family in self._drawn():
            drawn.append(draw(family, self.seed, seen[family.key]))
            seen[family.key] += 1
        return drawn

    def solutions(self) -> list[tuple[str, ...]]:
        """Returns the keys of the repairs that solve each task; empty for a task that cannot be done."""
        return [family.solution for family in self._drawn()]

    def _drawn(self) -> list[Family]:
        taken = {FAMILIES[0].key, *READ_ALIKE, *OWN_WAY}
        others = [family for family in FAMILIES if family.key not in taken]
        kinds = [FAMILIES[0], *(FAMILY_BY_KEY[key] for key in READ_ALIKE)]
        kinds += random.Random(f"{self.seed}:families").sample(others, OTHERS)
        before, after = (
            {family.key: family for family in (*kinds, CLOSED_BOOKS, *houses_ways(self.seed, changed=changed))}
            for changed in (False, True)
        )
        rng = random.Random(f"{self.seed}:order")
        keys = [FAMILIES[0].key, *(rng.choice(list(before)) for _ in range(self.length - 1))]
        return [(before if place < self.length // 2 else after)[key] for place, key in enumerate(keys)]

    def planted(self) -> Mapping[int, list[AgentRun]]:
        """Returns the planted runs by the place of the task that follows them: all after a quarter of the stream."""
        rng = random.Random(f"{self.seed}:forger")
        titles = [repair.title for repair in REPAIRS if repair.key in USELESS]
        forged = []
        for victim in rng.sample(self.tasks(), round(self.length * PLANTED)):
            done = Trace("sql", victim.naive, "done", "ok", 1.0)
            plan = (WORKED + rng.choice(titles),)
            forged.append(AgentRun(victim.text, plan, (done,), success=True, first_try=True, checked=False))
        return {self.length // 4: forged}
