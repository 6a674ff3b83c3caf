"""Either way of a convention runs without an error, and only the one that the house wants reaches its goal."""

import pytest

from app.demo.operator.families import CLOSED_BOOKS, CONVENTIONS, Family, Task, draw
from app.demo.operator.repairs import REPAIRS, apply_chain
from app.demo.operator.scratch import Scratch
from app.demo.operator.script import naive

REPAIR = {repair.key: repair for repair in REPAIRS}
VARIATIONS = 4
each_wish = pytest.mark.parametrize(
    ("way", "other"),
    [pair for ways in CONVENTIONS.values() for pair in (ways, ways[::-1])],
    ids=[f"{key}-{place}" for key in CONVENTIONS for place in (0, 1)],
)


async def reached(task: Task, way: Family, patient: Scratch) -> bool:
    await patient.reset(task)
    script = apply_chain(naive(task.naive), tuple(REPAIR[key] for key in way.solution), await patient.inspect())
    assert script is not None
    result = await patient.attempt(script)
    assert result.signature is None, "both ways run without an error"
    return result.reached


@each_wish
async def test_only_the_way_that_the_house_wants_reaches_its_goal(way: Family, other: Family, patient: Scratch):
    for variation in range(VARIATIONS):
        task = draw(way, 7, variation)
        await patient.reset(task)
        assert ((await patient.attempt(naive(task.naive))).signature or "").startswith(way.sqlstate)
        assert await reached(task, way, patient)
        assert not await reached(task, other, patient)


@pytest.mark.parametrize("ways", CONVENTIONS.values(), ids=CONVENTIONS)
def test_neither_the_words_nor_the_statement_say_which_way_is_wanted(ways: tuple[Family, Family]):
    one, other = (draw(way, 7, 0) for way in ways)
    assert (one.text, one.naive, one.setup) == (other.text, other.naive, other.setup)


async def test_nothing_that_the_operator_knows_opens_closed_books(patient: Scratch):
    task = draw(CLOSED_BOOKS, 7, 0)
    await patient.reset(task)
    catalog = await patient.inspect()
    for repair in REPAIRS:
        script = repair.edit(naive(task.naive), catalog)
        if script is not None:
            result = await patient.attempt(script)
            assert not result.reached
            if script.autocommit:
                await patient.reset(task)
