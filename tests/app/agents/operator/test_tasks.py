"""Tasks are drawn from families: the same seed, the same tasks."""

import pytest

from app.agents.operator.families import FAMILIES, Family
from app.agents.operator.tasks import draw, stream

VARIATIONS = 8
each_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.key)


@each_family
def test_variations_differ(family: Family):
    drawn = {(task.text, task.naive) for task in (draw(family, 7, variation) for variation in range(VARIATIONS))}
    assert len(drawn) == VARIATIONS


def test_the_same_seed_gives_the_same_stream_and_another_seed_another():
    assert stream(3, 50) == stream(3, 50)
    assert stream(3, 50) != stream(4, 50)
    assert stream(3, 1)[0].text == "Add a last_name column to the users table"
