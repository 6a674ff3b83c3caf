"""Differences of paired arms: groups stand or fall together, and there is no number without tasks."""

from math import isnan

import pytest

from app.demo.compare import absolute, bootstrap, relative


def test_the_value_is_that_of_all_pairs_however_they_are_grouped():
    pairs = [(10.0, 5.0), (20.0, 10.0), (30.0, 30.0)]
    grouped, apart = bootstrap([pairs[:2], pairs[2:]], relative), bootstrap([[pair] for pair in pairs], relative)
    assert grouped.value == apart.value == pytest.approx(45 / 60 - 1)


def test_pairs_that_stand_or_fall_together_leave_a_wider_interval():
    groups = [[(0.0, float(place % 2))] * 20 for place in range(6)]
    together = bootstrap(groups, absolute)
    apart = bootstrap([[pair] for group in groups for pair in group], absolute)
    assert together.high - together.low > 2 * (apart.high - apart.low)


def test_without_tasks_there_is_no_number():
    assert isnan(bootstrap([], absolute).value)
