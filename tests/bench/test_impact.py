"""The benchmark of impact: its worlds are what they say, and a plain comparison fails in each of them."""

import numpy as np
import pytest

from bench.impact import UPLIFT, World, judge, log_of, worlds


@pytest.mark.parametrize("world", worlds(0.0), ids=lambda world: world.name)
def test_where_memory_changes_nothing_a_plain_comparison_says_that_it_helps(world: World):
    logs = [log_of(world, rng) for rng in np.random.default_rng(1).spawn(3)]
    assert np.mean([log.worth.mean() for log in logs]) == pytest.approx(0, abs=0.01)
    assert np.mean([log.naive for log in logs]) > 0.05
    assert not any(judge(log).difference.helped for log in logs)


@pytest.mark.parametrize("world", worlds(UPLIFT), ids=lambda world: world.name)
def test_the_truth_is_the_gain_by_shown_slates_less_the_slates_that_were_left_empty(world: World):
    logs = [log_of(world, rng) for rng in np.random.default_rng(1).spawn(3)]
    assert np.mean([log.worth.mean() for log in logs]) == pytest.approx(UPLIFT, abs=0.015)


def test_the_lots_are_the_products_own_and_slates_of_hard_queries_are_left_empty_more_often():
    log = log_of(worlds(0.0)[0], np.random.default_rng(1))
    empty = log.decisions.logged.logged_propensity[log.decisions.empty.target_probability > 0]
    assert sorted(np.unique(empty.round(4)).tolist()) == [0.005, 0.1]


def test_the_same_seed_is_the_same_log():
    world = worlds(UPLIFT)[-1]
    first, second = (judge(log_of(world, np.random.default_rng(5), 1_000)) for _ in range(2))
    assert first == second
