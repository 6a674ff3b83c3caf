"""Casebank beats keyword memory where the aim is reached and the interval leaves nothing out; else the demo says no."""

from dataclasses import replace

import pytest

from app.demo.arms import Arm, Stream, TaskRecord
from app.demo.compare import compare

RECORD = TaskRecord("a-0", "a", "Add it", 10, True, False, False, False, 0, 0, 0, None, 1.0)


def stream(steps: list[int], *, seed: int = 1, successes: int = 100) -> Stream:
    """Returns a stream of ten families in which keyword memory takes ten steps for everything, and half fails."""
    families = [replace(RECORD, family=str(place % 10)) for place in range(100)]
    rival = [replace(each, success=place % 20 < 10) for place, each in enumerate(families)]
    own = [
        replace(each, steps=steps[place % len(steps)], success=place % 20 < 10 or place % 20 - 10 < successes / 10)
        for place, each in enumerate(families)
    ]
    return Stream(
        seed, Arm("no memory", rival), Arm("keyword memory", rival), Arm("twice", rival), Arm("casebank", own)
    )


def test_two_fifths_fewer_steps_everywhere_is_a_win():
    found = compare([stream([6], successes=0)])
    assert found.steps.value == pytest.approx(-0.4)
    assert found.proven
    assert "casebank takes fewer steps than keyword memory" in found.sentence()
    assert "aim reached" in found.sentence()


def test_more_success_everywhere_is_a_win_at_the_same_steps():
    found = compare([stream([10], successes=100)])
    assert found.success.value == 50
    assert found.proven


def test_less_than_the_aim_is_none_however_sure():
    found = compare([stream([9], successes=0)])
    assert found.steps.high < 0
    assert not found.proven
    assert "casebank takes fewer steps than keyword memory" in found.sentence()
    assert "aim missed" in found.sentence()


def test_a_win_in_one_family_alone_is_none_for_the_interval_is_by_family():
    found = compare([stream([1] + [6] * 9, successes=0)])
    assert found.proven
    lopsided = compare([stream([1, *[9, 12, 9, 12, 9, 7, 12, 8, 11]], successes=0)])
    assert not lopsided.proven


def test_equal_arms_differ_by_nothing():
    found = compare([stream([10], successes=0)])
    assert (found.steps.value, found.success.value, found.first_try.value) == (0, 0, 0)
    assert not found.proven
