"""How well a head predicts what it was not trained on, beside the default."""

import numpy as np

from policy.held_out import held_out_log_loss
from policy.train import train
from tests.policy.builders import ONE_RIDGE, logged, start

ALL = ["held_out", "log_loss_gain", "log_loss_gain_error", "mean_reward", "log_loss_of_default", "log_loss"]


def test_of_no_decisions_only_that_is_said():
    none = held_out_log_loss(logged(np.random.default_rng(0), 0), start(), 1.0)
    assert none == {"held_out": 0, "log_loss_gain": 0.0, "log_loss_gain_error": 0.0}


def test_an_untrained_head_gains_exactly_nothing():
    seen = held_out_log_loss(logged(np.random.default_rng(1), 50), start(), 1.0)
    assert (seen["held_out"], seen["log_loss_gain"], seen["log_loss"]) == (50, 0.0, seen["log_loss_of_default"])
    assert set(seen) == set(ALL)


def test_what_was_learned_of_one_log_gains_on_another_of_the_same_bank():
    early, late = (logged(np.random.default_rng(seed), 2_000) for seed in (2, 3))
    (head,) = train([early], [0], start(), ONE_RIDGE)
    seen = held_out_log_loss(late, head, 1.0)
    assert seen["log_loss_gain"] > 2 * seen["log_loss_gain_error"] > 0
