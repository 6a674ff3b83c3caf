from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policy.evaluate import (
    Resampling,
    clustered_mean,
    difference_shares,
    effective_sample,
    missingness,
    weights,
)
from policy.gate import Contest, judge
from policy.logged import Logged, Target
from tests.policy.decision_logs import log
from tests.policy.worlds import difference, two_arms, value

RESAMPLING = Resampling(resamples=500)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=50))
def test_the_estimate_is_the_mean_reward_when_both_policies_agree(rewards: list[float]):
    logged = log(rewards)
    found = value(logged, Target(np.ones(len(rewards))), Resampling(resamples=20))
    assert found.estimate == pytest.approx(np.mean(rewards), abs=1e-12)


def test_policies_that_give_the_same_slates_differ_by_exactly_zero():
    logged, contest = two_arms(uplift=0.3)
    found = difference(logged, contest.default, contest.default, RESAMPLING)
    assert (found.estimate, found.low, found.high) == (0, 0, 0)


def test_a_decision_on_which_the_slates_agree_adds_exactly_nothing_to_the_difference():
    logged, contest = two_arms()
    agree = contest.candidate.target_probability == contest.default.target_probability
    assert agree.any()
    assert (difference_shares(logged, contest.candidate, contest.default, 0)[agree] == 0).all()


def test_the_estimate_is_unbiased_against_the_known_truth():
    truth = 0.3 * 0.6
    found = [difference(*parts(seed), Resampling(resamples=2)) for seed in range(300)]
    estimates = np.array([one.estimate for one in found])
    assert abs(estimates.mean() - truth) < 4 * estimates.std() / np.sqrt(len(estimates))


def parts(seed: int) -> tuple[Logged, Target, Target]:
    logged, contest = two_arms(n=400, seed=seed)
    return logged, contest.candidate, contest.default


def test_the_control_makes_the_difference_less_noisy_than_plain_ips():
    controlled, plain = [], []
    for seed in range(100):
        logged, ours, theirs = parts(seed)
        controlled.append(difference(logged, ours, theirs, Resampling(resamples=2)).estimate)
        plain.append(((weights(logged, ours) - weights(logged, theirs)) * logged.reward).mean())
    assert np.std(controlled) < 0.8 * np.std(plain)


def test_the_cluster_bootstrap_is_wider_than_the_plain_one_where_groups_repeat():
    rng = np.random.default_rng(0)
    reward = np.repeat((rng.random(100) < 0.5).astype(float), 9)
    plain = value(log(reward), Target(np.ones(900)), RESAMPLING)
    clustered = value(log(reward, group=np.repeat(np.arange(100), 9)), Target(np.ones(900)), RESAMPLING)
    assert clustered.estimate == pytest.approx(plain.estimate)
    assert clustered.high - clustered.low == pytest.approx(3 * (plain.high - plain.low), rel=0.2)


def test_the_lower_bound_is_above_the_truth_about_as_often_as_its_level_says():
    above = [difference(*parts(seed), Resampling(level=0.9, resamples=200)).low > 0.18 for seed in range(400)]
    assert 0.05 < np.mean(above) < 0.16


def test_the_same_seed_gives_the_same_interval_and_another_seed_another():
    logged, contest = two_arms()
    one, same, other = (
        difference(logged, contest.candidate, contest.default, Resampling(resamples=300, seed=seed))
        for seed in (1, 1, 2)
    )
    assert one == same
    assert one.low != other.low


@settings(deadline=None)
@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=40), st.floats(0.1, 10))
def test_the_effective_sample_is_at_most_the_rows_and_knows_no_scale(weight: list[float], factor: float):
    rows = np.array(weight)
    found = effective_sample(rows)
    assert 1 - 1e-9 <= found <= len(rows) + 1e-9
    assert effective_sample(rows * factor) == pytest.approx(found)


def test_the_effective_sample_of_equal_weights_is_their_number_and_of_one_heavy_row_is_one():
    assert effective_sample(np.full(50, 3.0)) == pytest.approx(50)
    assert effective_sample(np.array([1e6] + [1e-6] * 49)) == pytest.approx(1, abs=1e-6)
    assert effective_sample(np.zeros(5)) == 0


def test_the_error_of_a_mean_counts_groups_and_not_rows():
    column = np.repeat([0.0, 1.0, 0.0, 1.0], 25)
    assert clustered_mean(column, np.arange(100))[1] == pytest.approx(0.05, rel=0.02)
    assert clustered_mean(column, np.repeat(np.arange(4), 25))[1] == pytest.approx(0.5 / np.sqrt(3))


def test_a_reward_that_is_missing_is_left_out_and_not_zero():
    logged, contest = two_arms()
    hidden = np.random.default_rng(5).random(1000) < 0.2
    verdict = judge(replace(logged, reward=np.where(hidden, np.nan, logged.reward)), contest)
    kept = contest.candidate.take(~hidden)
    expected = value(logged.take(~hidden), kept, Resampling(resamples=2000)).estimate
    assert verdict.estimates["candidate"].estimate == expected
    assert (verdict.decisions, verdict.missing.missing) == (int((~hidden).sum()), int(hidden.sum()))


def test_missing_rewards_are_counted_by_arm():
    logged, contest = two_arms()
    ours = contest.candidate.target_probability > contest.default.target_probability
    found = missingness(replace(logged, reward=np.where(ours, np.nan, logged.reward)), *parts_of(contest))
    assert (found.rate_candidate, found.rate_default) == (1, 0)
    assert found.z > 10


def parts_of(contest: Contest) -> tuple[Target, Target]:
    return contest.candidate, contest.default
