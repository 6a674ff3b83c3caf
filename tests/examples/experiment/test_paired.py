"""Pairs of the same task, their difference with its interval, and where the price is paid back."""

from dataclasses import replace
from math import inf, isnan

import pytest

from examples.experiment.episode import Episode
from examples.experiment.paired import (
    break_even,
    of_a_kind,
    paired,
    rating,
    rating_won,
    running_balance,
    steps_change,
    success_points,
    tokens_change,
)


def episode(task_id: str, steps: int, *, success: bool = True, spent: int = 0, added: int = 0) -> Episode:
    ended = "success" if success else "failure"
    return Episode(task_id, "f", ended, float(success), steps, 0, (), added, spent, None, 1.0)


RUNS = [episode(name, 1) for name in "abc"]


def test_break_even_is_where_the_balance_stays_above_zero_for_good():
    assert break_even([-5, 3, -1, 0, 4]) == 4
    assert break_even([2, 5]) == 1
    assert break_even([5, -1]) == inf
    assert isnan(break_even([]))
    pairs = [
        (episode("a", 9, spent=90), episode("a", 9, spent=90, added=20)),
        (episode("b", 9, spent=90), episode("b", 3, spent=30, added=10)),
    ]
    assert running_balance(pairs) == [-20, 30]


def test_a_failure_counts_the_whole_budget():
    pairs = [(episode("a", 2, success=False), episode("a", 5)), (episode("b", 10), episode("b", 5))]
    assert steps_change(pairs, 20, seed=1).value == pytest.approx(10 / 30 - 1)
    assert success_points(pairs, seed=1).value == 50


def test_a_failure_is_rated_by_what_it_reached_and_a_success_by_the_budget_that_it_left():
    failed = replace(episode("a", 9, success=False), reward=0.5)
    assert [rating(failed, 9), *(rating(episode("a", steps), 9) for steps in (9, 5, 1))] == [1.5, 3, 4, 5]
    assert rating_won([(failed, episode("a", 5))], 9, seed=1).value == 2.5


def test_tokens_with_memory_include_its_text():
    pairs = [(episode("a", 9, spent=100), episode("a", 3, spent=30, added=20))]
    assert tokens_change(pairs, seed=1).value == pytest.approx(-0.5)


def test_pairs_of_a_kind_keep_their_order():
    kinds = of_a_kind([(replace(one, family=family), one) for family, one in zip("xyx", RUNS, strict=True)])
    assert [[after.task_id for _, after in kind] for kind in kinds] == [["a", "c"], ["b"]]


def test_the_interval_is_by_task_and_the_same_for_the_same_seed():
    pairs = [(episode(str(n), 10), episode(str(n), n)) for n in range(1, 10)]
    once = steps_change(pairs, 20, seed=1)
    assert once == steps_change(pairs, 20, seed=1)
    assert once.low < once.value < once.high
    # a task that was tried with three wrong banks is still one task
    assert steps_change(pairs * 3, 20, seed=1) == once


def test_a_pair_with_a_failed_environment_is_left_out():
    broken = replace(episode("b", 1), ended="environment failed")
    assert paired([episode("a", 3), broken], [episode("a", 2), episode("b", 2)]) == [(episode("a", 3), episode("a", 2))]
