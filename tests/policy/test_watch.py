"""The watch over a promoted policy: seldom a false alarm, and soon a true one."""

import numpy as np
import pytest

from policy.logged import EvaluationError
from policy.watch import watch


def test_live_rewards_as_promised_are_seldom_rolled_back_however_often_one_asks():
    alarms = sum(watch((np.random.default_rng(n).random(3000) < 0.5).astype(float), 0.5).roll_back for n in range(400))
    assert alarms / 400 <= 0.02


def test_live_rewards_below_the_interval_are_rolled_back_soon_and_for_good():
    rewards = (np.random.default_rng(0).random(2000) < 0.35).astype(float)
    alarms = [watch(rewards[:count], 0.55).roll_back for count in range(2000)]
    assert 0 < alarms.index(True) < 400
    assert all(alarms[alarms.index(True) :])


def test_a_watch_that_goes_on_from_the_wealth_it_left_sees_what_one_watch_of_all_sees():
    rewards = (np.random.default_rng(1).random(300) < 0.45).astype(float)
    whole, wealth = watch(rewards, 0.5), watch(rewards[:0], 0.5).wealth
    for part in np.split(rewards, [1, 120, 121]):
        wealth = watch(part, 0.5, wealth).wealth
    assert wealth == pytest.approx(whole.wealth)


def test_missing_live_rewards_are_left_out():
    assert watch(np.tile([0.0, np.nan], 20), 0.9) == watch(np.zeros(20), 0.9)
    assert not watch(np.full(50, np.nan), 0.9).roll_back


@pytest.mark.parametrize("floor", [-0.5, 0.0, 1.0, 1.2])
def test_the_watch_stands_floors_at_and_beyond_the_ends_of_the_range(floor: float):
    found = watch(np.tile([0.0, 1.0], 5000), floor)
    assert np.isfinite(found.evidence)
    assert found.roll_back == (floor >= 1)


def test_a_floor_or_live_reward_that_is_no_number_is_a_named_error():
    with pytest.raises(EvaluationError, match="only a reward may be missing"):
        watch(np.ones(3), np.nan)
    with pytest.raises(EvaluationError, match="only a reward may be missing"):
        watch(np.array([np.inf]), 0.5)
