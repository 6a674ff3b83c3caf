"""The benchmark of an idle service says where the time of its start goes."""

import pytest

from app import postgres
from app.settings import Settings
from bench.idle import starts
from tests.processes import new_home


async def test_the_parts_of_a_start_are_the_whole_beside_the_first_start_ever():
    with new_home() as home:
        first, whole, *parts = await starts(Settings(home=home), rounds=1)
        postgres.release(home)
    assert (first.name, whole.name, whole.aim) == ("start on an empty home", "start on an existing home", 3)
    assert [part.name for part in parts] == ["start: Python and imports", "start: Postgres", "start: the rest"]
    assert sum(part.value for part in parts) == pytest.approx(whole.value)
    assert all(each.value > 0 for each in (first, whole, *parts[:2]))
