"""Looking again and again: what is spent, and that zero passes no more often than that."""

import numpy as np
import pytest

from policy.spending import Spending, bounds

PLAN = Spending()
LOOKS = np.array([look for look in PLAN.looks() if look >= 300], dtype=np.float64)


def walks(drift: float, count: int = 4_000) -> np.ndarray:
    """Z at each look of so many trials whose score drifts by so much a decision, (count, looks)."""
    steps = np.diff(LOOKS, prepend=0)
    moved = np.random.default_rng(0).normal(size=(count, len(LOOKS))) * np.sqrt(steps) + drift * steps
    return np.cumsum(moved, axis=1) / np.sqrt(LOOKS)


def test_a_difference_of_zero_passes_any_look_no_more_often_than_was_to_be_spent():
    passed = walks(0.0) >= bounds(LOOKS, PLAN.spent(LOOKS))
    assert passed.any(axis=1).mean() == pytest.approx(PLAN.error, abs=0.005)
    assert passed[:, PLAN.soon >= LOOKS].any(axis=1).mean() == pytest.approx(PLAN.error * PLAN.early, abs=0.005)


def test_a_fixed_level_at_each_look_would_pass_zero_several_times_as_often():
    assert (walks(0.0) >= 2.326).any(axis=1).mean() > 3 * PLAN.error


def test_looks_that_grow_alike_pass_zero_even_less_often():
    score = np.random.default_rng(1).normal(size=(4_000, 1)) * np.ones(len(LOOKS))  # the same at each look
    assert (score >= bounds(LOOKS, PLAN.spent(LOOKS))).any(axis=1).mean() < PLAN.error


def test_the_first_look_alone_is_the_plain_test():
    (bound,) = bounds(np.array([7.0]), np.array([0.025]))
    assert bound == pytest.approx(1.96, abs=0.02)


def test_bounds_do_not_depend_on_the_unit_of_information():
    spent = PLAN.spent(LOOKS)
    assert bounds(LOOKS * 1e-3, spent) == pytest.approx(bounds(LOOKS, spent), abs=1e-6)


def test_all_is_spent_at_the_end_and_never_given_back():
    spent = PLAN.spent(np.array([0.0, 300, 1_000, 4_000, 9_000]))
    assert spent[0] == 0
    assert (np.diff(spent) >= 0).all()
    assert spent[2] == pytest.approx(PLAN.error * PLAN.early)
    assert spent[-2:] == pytest.approx([PLAN.error] * 2)
