"""Tasks are drawn from families: the same seed, the same tasks."""

import pytest

from app.demo.operator.families import FAMILIES, Family, draw

VARIATIONS = 8


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.key)
def test_variations_differ(family: Family):
    drawn = {(task.text, task.naive) for task in (draw(family, 7, variation) for variation in range(VARIATIONS))}
    assert len(drawn) == VARIATIONS
