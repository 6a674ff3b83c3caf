"""Where training begins, how far it moves, and when it stays."""

from dataclasses import replace

import numpy as np
import pytest

from policy.train import train
from tests.policy.builders import ONE_RIDGE, logged, start, toy
from tests.policy.trained import PROBE, moved, rng


def test_without_examples_a_profile_keeps_the_untrained_head():
    (head,) = train([logged(rng(), 0)], [1], start(), ONE_RIDGE)
    assert all(np.array_equal(array, start().arrays()[name]) for name, array in head.arrays().items())


def test_nobody_to_train_is_nothing_to_do():
    assert train([], [], start(), ONE_RIDGE) == []


def test_what_is_learned_does_not_depend_on_the_units_of_the_inputs():
    rows = logged(rng(10), 200)
    scaled = replace(rows, inputs=rows.inputs * 4 + 1, query=rows.query * 2)
    one, other = (train([each], [1], start(), ONE_RIDGE)[0] for each in (rows, scaled))
    assert other.linear == pytest.approx(one.linear, abs=1e-3)
    assert np.abs(one.linear).max() > 0.05


def test_the_harder_the_pull_the_less_training_moves():
    rows, begin = logged(rng(11), 300), start()
    ridges = (1.0, 30.0, 1_000.0, 100_000.0)
    distances = [moved(train([rows], [1], begin, (ridge,))[0], begin, PROBE) for ridge in ridges]
    assert distances == sorted(distances, reverse=True)
    assert distances[0] > 0.5
    assert distances[-1] < 0.01


def test_the_more_decisions_there_are_the_farther_training_moves():
    rows = logged(rng(12), 1_000)
    heads = [train([rows.take(np.arange(size))], [1], start(), ONE_RIDGE)[0] for size in (20, 200, 1_000)]
    distances = [moved(head, start(), PROBE) for head in heads]
    assert distances == sorted(distances)


@pytest.mark.parametrize("reward", [0.0, 0.5, 1.0])
def test_rewards_that_are_all_equal_leave_the_order_nearly_alone(reward: float):
    rows = logged(rng(13), 400)
    (head,) = train([replace(rows, reward=np.full(400, reward, np.float32))], [1], start(), ONE_RIDGE)
    assert all(np.isfinite(array).all() for array in head.arrays().values())
    # the default's own opinion is all there is to unlearn: its spread is a half
    assert moved(head, start(), PROBE) < 0.25


def test_rewards_of_chance_move_the_order_less_than_rewards_that_mean_something():
    rows = logged(rng(14), 1_000)
    rows = replace(rows, prior=np.zeros_like(rows.prior))  # else chance would rightly unlearn the default's opinion
    shuffled = replace(rows, reward=rng(15).permutation(rows.reward))
    real, chance = train([rows, shuffled], [1, 1], start(), ONE_RIDGE)
    bank = toy(rng(16), 200)
    assert moved(chance, start(), bank) < 0.5 * moved(real, start(), bank)


def test_a_head_leaves_where_it_began_only_when_its_later_decisions_clearly_say_so():
    rows = logged(rng(14), 1_000)
    rows = replace(rows, prior=np.zeros_like(rows.prior))
    shuffled = replace(rows, reward=rng(15).permutation(rows.reward))
    real, chance = train([rows, shuffled], [1, 1], start())
    assert moved(chance, start(), PROBE) < 1e-5
    assert moved(real, start(), PROBE) > 0.1
