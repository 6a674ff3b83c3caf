"""The gate's benchmark for a fleet: the worlds are as they say, and a trial is cut as nights cut it."""

import numpy as np
import pytest

from bench.learning import fleet_gate
from bench.learning.fleet_gate import World
from writer.training.fleet import Witness, verdict_on


@pytest.fixture(scope="module")
def heard() -> list[Witness]:
    return fleet_gate.witnesses(World(0.3, 0.0), np.random.default_rng(0), users=40)


def test_every_user_is_a_cluster_of_their_own(heard: list[Witness]):
    assert [set(each.log.group) for each in heard] == [{number} for number in range(40)]


def test_half_of_the_users_gain_more_than_the_mean_and_half_less():
    users = fleet_gate.witnesses(World(0.0, 0.3), np.random.default_rng(0), users=60)
    gains = [
        np.average(each.log.reward, weights=each.contest.candidate.target_probability / each.log.logged_propensity)
        - np.average(each.log.reward, weights=each.contest.default.target_probability / each.log.logged_propensity)
        for each in users
    ]
    assert np.mean(gains[::2]) > 0.2
    assert np.mean(gains[1::2]) < -0.2


def test_a_night_sees_what_was_decided_before_it_and_no_more(heard: list[Witness]):
    middle = float(np.median(np.concatenate([each.at for each in heard])))
    seen = [fleet_gate.until(each, middle) for each in heard]
    assert sum(len(each.at) for each in seen) == 40 * fleet_gate.DECISIONS // 2
    assert verdict_on(seen, fleet_gate.SETTINGS).decisions == 40 * fleet_gate.DECISIONS // 2


def test_what_helps_everybody_much_is_promoted_and_what_harms_is_not(heard: list[Witness]):
    assert fleet_gate.lived(heard).promoted
    harmful = fleet_gate.witnesses(World(-0.3, 0.0), np.random.default_rng(1), users=40)
    assert not fleet_gate.lived(harmful).promoted
