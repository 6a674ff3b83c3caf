"""Each family of tasks fails as it says, and exactly its own repairs reach the goal."""

import pytest

from app.demo.operator.families import FAMILIES, Family, draw
from app.demo.operator.repairs import REPAIRS, apply_chain
from app.demo.operator.scratch import Scratch
from app.demo.operator.script import naive

VARIATIONS = 8
REPAIR = {repair.key: repair for repair in REPAIRS}
each_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.key)


def test_there_are_enough_families_and_lookalikes():
    solutions: dict[str, set[tuple[str, ...]]] = {}
    for family in FAMILIES:
        solutions.setdefault(family.sqlstate, set()).add(family.solution)
    assert len(FAMILIES) >= 12
    assert sum(len(ways) > 1 for ways in solutions.values()) >= 2
    assert any(len(family.solution) > 1 for family in FAMILIES)


@each_family
async def test_the_naive_statement_fails_as_stated_and_the_solution_reaches_the_goal(family: Family, patient: Scratch):
    for variation in range(VARIATIONS):
        task = draw(family, 7, variation)
        await patient.reset(task)
        failed = await patient.attempt(naive(task.naive))
        assert (failed.signature or "").startswith(family.sqlstate)
        script = apply_chain(naive(task.naive), tuple(REPAIR[key] for key in family.solution), await patient.inspect())
        assert script is not None
        assert (await patient.attempt(script)).reached, (script, patient.traces[-2:])


@each_family
async def test_no_other_repair_reaches_the_goal(family: Family, patient: Scratch):
    task = draw(family, 7, 0)
    await patient.reset(task)
    catalog = await patient.inspect()
    scripts = {r.key: r.edit(naive(task.naive), catalog) for r in REPAIRS if r.key not in family.solution}
    applicable = {key: script for key, script in scripts.items() if script is not None}
    assert len(applicable) >= 4  # the search is not trivial
    for key, script in applicable.items():
        assert not (await patient.attempt(script)).reached, key
        assert not patient.reward
        if script.autocommit:
            await patient.reset(task)
