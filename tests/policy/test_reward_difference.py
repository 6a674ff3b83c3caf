"""What memory changed is estimated from few, heavy, confounded empty slates, in worlds whose truth is known."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from policy.logged import Floats, Logged, Target
from policy.reward_difference import RewardDifference, difference, known_before, surprise
from tests.policy.decision_logs import log

DOUBTED, SURE = 0.105, 0.005
"""How often exploration leaves a slate empty: where telling is in doubt, and elsewhere."""
LOGS = 60


def world(rng: np.random.Generator, effect: float, decisions: int = 4_000) -> tuple[Logged, Target, float]:
    """Queries that come again, half of them hard; the hard ones are in doubt, and their slates are emptier."""
    query = rng.integers(0, decisions // 3, decisions)
    hard = rng.random(decisions)[query] < 0.5
    empty_chance = np.where(hard, DOUBTED, SURE)
    empty = rng.random(decisions) < empty_chance
    ease = np.where(hard, 0.2, 0.7) + rng.normal(0, 0.05, decisions)[query]
    reward = (rng.random(decisions) < ease + effect * ~empty).astype(float)
    chance = np.where(empty, empty_chance, 1 - empty_chance)
    truth = effect * float((1 - empty_chance).mean())
    return log(reward, chance, group=query), Target(empty.astype(float)), truth


def worlds(effect: float) -> list[tuple[RewardDifference, float, float]]:
    """What is said of each world, what is true, and the mean of full slates less that of empty ones."""
    found = []
    for rng in np.random.default_rng(7).spawn(LOGS):
        logged, empty, truth = world(rng, effect)
        is_empty = empty.target_probability > 0
        naive = logged.reward[~is_empty].mean() - logged.reward[is_empty].mean()
        found.append((difference(logged, empty, SURE), truth, float(naive)))
    return found


def test_where_memory_changes_nothing_it_is_not_said_to_help_though_the_plain_comparison_says_so_every_time():
    found = worlds(0.0)
    assert sum(said.helped is not None for said, _, _ in found) <= 0.05 * LOGS
    assert min(naive for _, _, naive in found) > 0.1


@pytest.mark.parametrize("effect", [0.08, -0.08])
def test_the_interval_covers_a_known_effect_which_the_plain_comparison_misses(effect: float):
    found = worlds(effect)
    assert sum(said.low <= truth <= said.high for said, truth, _ in found if said.low is not None) >= 0.93 * LOGS
    assert all(abs(naive - truth) > 0.05 for _, truth, naive in found)


def test_the_estimate_is_right_in_the_mean():
    off = [(said.estimate or 0) - truth for said, truth, _ in worlds(0.08)]
    assert abs(np.mean(off)) < 3 * np.std(off) / np.sqrt(LOGS)


def test_a_large_effect_is_found_either_way():
    said = [difference(*_evenly(np.random.default_rng(3), effect), 0.1).helped for effect in (0.3, -0.3)]
    assert said == [True, False]


def _evenly(rng: np.random.Generator, effect: float, decisions: int = 2_000) -> tuple[Logged, Target]:
    empty = rng.random(decisions) < 0.1
    reward = (rng.random(decisions) < 0.5 + effect * ~empty).astype(float)
    return log(reward, np.where(empty, 0.1, 0.9)), Target(empty.astype(float))


def test_a_normal_interval_of_twelve_empty_slates_that_all_went_well_is_no_point_here():
    empty = np.arange(2_400) < 12
    reward = np.where(empty, 1.0, np.arange(2_400) % 10 > 0)
    said = difference(log(reward, np.where(empty, SURE, 1 - SURE)), Target(empty.astype(float)), SURE)
    assert said.estimate == pytest.approx(-0.1, abs=0.01)
    assert said.helped is None
    assert said.high is not None
    assert said.high > 0.1  # twelve of twelve is no surprise where nine of ten go well


def test_without_empty_slates_it_says_how_many_decisions_are_missing():
    said = difference(log(np.ones(100), np.full(100, 0.995)), Target(np.zeros(100)), SURE)
    assert (said.estimate, said.helped, said.more) == (None, None, 2_000)


def test_decisions_before_the_first_empty_slate_bring_it_no_nearer():
    said = difference(log(np.ones(5_000), np.ones(5_000)), Target(np.zeros(5_000)), SURE)
    assert (said.estimate, said.more) == (None, 2_000)


def test_no_decisions_say_nothing():
    said = difference(log([]), Target(np.zeros(0)), SURE)
    assert (said.decisions, said.estimate, said.more) == (0, None, 2_000)


def test_the_number_that_is_missing_falls_to_none_as_the_evidence_grows():
    numbers = [difference(*_evenly(np.random.default_rng(3), 0.2, count), 0.1).more for count in (300, 4_000)]
    assert all(earlier > later for earlier, later in pairwise(number or 0 for number in numbers))
    assert numbers[-1] == 0


def test_where_all_rewards_are_equal_nothing_differs_and_no_number_of_decisions_is_told():
    logged, empty = _evenly(np.random.default_rng(3), 0.3)
    said = difference(replace(logged, reward=np.ones(len(logged.reward))), empty, 0.1)
    assert (said.estimate, said.helped, said.more) == (0, None, None)


def test_rewards_that_are_missing_by_side_are_doubted():
    logged, empty = _evenly(np.random.default_rng(3), 0.3)
    silent = (empty.target_probability > 0) & (np.arange(2_000) % 2 > 0)
    said = difference(replace(logged, reward=np.where(silent, np.nan, logged.reward)), empty, 0.1)
    assert said.helped is None
    assert "missing" in (said.doubt or "")


def test_what_the_log_could_not_have_served_is_doubted():
    logged, _ = _evenly(np.random.default_rng(3), 0.3)
    other = Target((np.arange(2_000) % 5 == 0).astype(float))
    said = difference(logged, other, 0.1)
    assert said.helped is None
    assert "could not have served" in (said.doubt or "")


def test_a_query_that_comes_a_hundred_times_counts_as_one():
    rng = np.random.default_rng(3)
    logged, empty = _evenly(rng, 0.3)
    apart = difference(logged, empty, 0.1)
    together = difference(replace(logged, group=np.arange(2_000) // 100), empty, 0.1)
    assert together.effective <= 20 < apart.effective


def test_chances_that_are_told_wrong_give_another_answer():
    rng = np.random.default_rng(7)
    logged, empty, truth = world(rng, 0.0, 40_000)
    even = replace(logged, logged_propensity=np.full(40_000, empty.target_probability.mean()))
    right, wrong = (difference(each, empty, SURE).estimate or 0 for each in (logged, even))
    assert abs(right - truth) < 0.1 < wrong


@pytest.mark.parametrize("what", [lambda at: at, lambda at: at % 7])
def test_what_is_foreseen_takes_drift_out_of_the_noise(what: Callable[[Floats], Floats]):
    at = np.arange(2_000, dtype=float)
    reward = np.where(what(at) > what(at).mean(), 0.9, 0.1)
    seen = log(reward, covariates=what(at)[:, None])
    assert surprise(seen).std() < 0.7 * surprise(log(reward)).std()


def test_what_was_known_before_holds_nothing_of_a_decisions_own_reward():
    at, group = np.arange(4.0), np.array([1, 1, 2, 1])
    reward = np.array([1.0, np.nan, 0.0, 1.0])
    seen, other = (known_before(at, group, each)[:, 1] for each in (reward, np.where(at == 3, 0.0, reward)))
    assert seen[1] > seen[0]
    ranked = [seen[3] > seen[2], other[3] > other[2]]
    assert ranked == [True, True]
