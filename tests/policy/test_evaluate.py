from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from app.bench.learning.canary import DEFAULT_SLATE, explored, slate_probability
from policy.evaluate import (
    Plan,
    clustered_mean,
    difference_shares,
    doubly_robust,
    effective_sample,
    missingness,
    weights,
)
from policy.gate import Contest, judge
from policy.logged import (
    EvaluationError,
    Floats,
    IncompleteModel,
    Logged,
    NotFinite,
    OutOfRange,
    ShapeMismatch,
    Target,
    earlier_mean,
    mixture_propensity,
)
from policy.reliability import calibration, segments
from tests.policy.worlds import difference, two_arms, value

PLAN = Plan(resamples=500)


def log(reward: ArrayLike, propensity: Floats | None = None, **columns: Any) -> Logged:
    reward = np.asarray(reward, dtype=float)
    n = len(reward)
    propensity = np.ones(n) if propensity is None else propensity
    filled = {"group": np.arange(n), "segment": np.zeros(n, dtype=int), **columns}
    return Logged(reward=reward, logged_propensity=propensity, **filled)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=50))
def test_every_estimator_is_the_mean_reward_when_both_policies_agree(rewards: list[float]):
    logged = log(rewards)
    found = value(logged, Target(np.ones(len(rewards))), Plan(resamples=20))
    for one in (found.ips, found.snips, found.dr):
        assert one.estimate == pytest.approx(np.mean(rewards), abs=1e-12)


def test_policies_that_give_the_same_slates_differ_by_exactly_zero():
    logged, contest = two_arms(uplift=0.3)
    found = difference(logged, contest.default, contest.default, PLAN)
    assert (found.dr.estimate, found.dr.low, found.dr.high) == (0, 0, 0)
    assert (found.ips.low, found.snips.high) == (0, 0)


def test_a_decision_on_which_the_slates_agree_adds_exactly_nothing_to_the_difference():
    logged, contest = two_arms()
    agree = contest.candidate.target_probability == contest.default.target_probability
    assert agree.any()
    assert (difference_shares(logged, contest.candidate, contest.default, PLAN)[agree] == 0).all()


def test_the_estimators_are_unbiased_against_the_known_truth():
    truth = 0.3 * 0.6
    found = [difference(*parts(seed), Plan(resamples=2)) for seed in range(300)]
    for name in ("ips", "snips", "dr"):
        estimates = np.array([getattr(one, name).estimate for one in found])
        assert abs(estimates.mean() - truth) < 4 * estimates.std() / np.sqrt(len(estimates))


def parts(seed: int) -> tuple[Logged, Target, Target]:
    logged, contest = two_arms(n=400, seed=seed)
    return logged, contest.candidate, contest.default


def test_the_control_makes_the_difference_less_noisy_than_plain_ips():
    found = [difference(*parts(seed), Plan(resamples=2)) for seed in range(100)]
    assert np.std([one.dr.estimate for one in found]) < 0.8 * np.std([one.ips.estimate for one in found])


def test_doubly_robust_is_exact_with_a_perfect_model():
    rng = np.random.default_rng(0)
    ours = rng.random(200) < 0.25
    if_ours, if_theirs = rng.random(200), rng.random(200)
    reward = np.where(ours, if_ours, if_theirs)
    logged = log(reward, np.where(ours, 0.25, 0.75), q_logged=reward)
    candidate = Target(ours.astype(float), v_target=if_ours)
    default = Target((~ours).astype(float), v_target=if_theirs)
    assert value(logged, candidate, PLAN).dr.estimate == pytest.approx(if_ours.mean(), abs=1e-12)
    found = difference(logged, candidate, default, PLAN).dr.estimate
    assert found == pytest.approx((if_ours - if_theirs).mean(), abs=1e-12)


def test_doubly_robust_is_right_with_a_wrong_model_and_right_propensities():
    logged, contest = two_arms(n=40_000)
    wrong = np.full(40_000, 0.9)
    logged = replace(logged, q_logged=wrong)
    candidate = replace(contest.candidate, v_target=wrong)
    assert doubly_robust(logged, candidate).mean() == pytest.approx(0.4 + 0.18, abs=0.02)


def test_a_model_for_the_log_alone_is_a_named_error():
    with pytest.raises(IncompleteModel):
        doubly_robust(log([0.0, 1.0], q_logged=np.zeros(2)), Target(np.ones(2)))


def test_the_propensity_of_a_slate_that_both_policies_give_is_the_sum_over_both():
    both, ours, theirs = np.array([1.0, 1.0, 0.0]), np.array([1.0, 1.0, 0.0]), np.array([1.0, 0.0, 1.0])
    assert mixture_propensity([0.75, 0.25], [theirs, ours]).tolist() == [1.0, 0.25, 0.75]
    assert mixture_propensity([0.75, 0.25], [both, ours]).tolist() == [1.0, 1.0, 0.0]


def test_an_explored_slate_that_is_the_other_policys_own_counts_for_both():
    rng, n = np.random.default_rng(1), 20_000
    theirs, ours = np.tile(DEFAULT_SLATE, (n, 1)), np.tile([0, 1, 2, 4], (n, 1))
    arm = rng.random(n) < 0.25
    slate = explored(np.where(arm[:, None], ours, theirs), 0.2, rng)
    propensity = mixture_propensity([0.75, 0.25], [slate_probability(slate, each, 0.2) for each in (theirs, ours)])
    is_ours = (slate == ours).all(axis=1)
    assert is_ours.mean() == pytest.approx(0.25 * 0.8 + 0.75 * 0.05, abs=0.01)
    assert np.unique(propensity[is_ours]) == pytest.approx([0.25 * 0.8 + 0.75 * 0.05])
    assert weights(log(np.zeros(n), propensity), Target(is_ours.astype(float))).mean() == pytest.approx(1, abs=0.05)


def test_the_cluster_bootstrap_is_wider_than_the_plain_one_where_groups_repeat():
    rng = np.random.default_rng(0)
    reward = np.repeat((rng.random(100) < 0.5).astype(float), 9)
    plain = value(log(reward), Target(np.ones(900)), PLAN).dr
    clustered = value(log(reward, group=np.repeat(np.arange(100), 9)), Target(np.ones(900)), PLAN).dr
    assert clustered.estimate == pytest.approx(plain.estimate)
    assert clustered.high - clustered.low == pytest.approx(3 * (plain.high - plain.low), rel=0.2)


def test_the_lower_bound_is_above_the_truth_about_as_often_as_its_level_says():
    above = [difference(*parts(seed), Plan(level=0.9, resamples=200)).dr.low > 0.18 for seed in range(400)]
    assert 0.05 < np.mean(above) < 0.16


def test_the_same_seed_gives_the_same_interval_and_another_seed_another():
    logged, contest = two_arms()
    one, same, other = (
        difference(logged, contest.candidate, contest.default, Plan(resamples=300, seed=seed)) for seed in (1, 1, 2)
    )
    assert one == same
    assert one.dr.low != other.dr.low


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
    expected = value(logged.take(~hidden), kept, Plan(resamples=2000)).dr.estimate
    assert verdict.estimates["candidate"].dr.estimate == expected
    assert (verdict.decisions, verdict.missing.missing) == (int((~hidden).sum()), int(hidden.sum()))


def test_missing_rewards_are_counted_by_arm():
    logged, contest = two_arms()
    ours = contest.candidate.target_probability > contest.default.target_probability
    found = missingness(replace(logged, reward=np.where(ours, np.nan, logged.reward)), *parts_of(contest))
    assert (found.rate_candidate, found.rate_default) == (1, 0)
    assert found.z > 10


def parts_of(contest: Contest) -> tuple[Target, Target]:
    return contest.candidate, contest.default


def test_the_mean_of_earlier_rewards_is_shrunk_and_unknown_groups_get_the_overall_mean():
    found = earlier_mean(np.array([1.0, 1.0, 0.0, 0.0, np.nan]), np.array([7, 7, 8, 8, 9]), np.array([7, 9, 8, 1]))
    assert found.tolist() == [0.75, 0.5, 0.25, 0.5]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_propensity_or_probability_that_is_no_number_is_a_named_error(bad: float):
    with pytest.raises(NotFinite):
        log([0.0, 1.0], np.array([1.0, bad]))
    with pytest.raises(NotFinite):
        Target(np.array([1.0, bad]))
    with pytest.raises(NotFinite):
        log([0.0, 1.0], covariates=np.array([[1.0], [bad]]))
    with pytest.raises(NotFinite):
        Target(np.ones(2), v_target=np.array([0.0, bad]))


def test_infinite_rewards_and_promises_are_named_errors():
    with pytest.raises(NotFinite):
        log([0.0, np.inf])
    with pytest.raises(NotFinite):
        Target(np.ones(2), predicted=np.array([0.0, np.inf]))


@pytest.mark.parametrize(
    "make",
    [
        lambda: log([0.0, 1.5]),
        lambda: log([0.0, -0.1]),
        lambda: log([0.0, 1.0], np.array([0.0, 1.0])),
        lambda: log([0.0, 1.0], np.array([1.1, 1.0])),
        lambda: Target(np.array([1.2, 0.0])),
    ],
)
def test_rewards_and_probabilities_out_of_range_are_named_errors(make: Callable[[], object]):
    with pytest.raises(OutOfRange):
        make()


def test_columns_of_different_lengths_are_a_named_error():
    with pytest.raises(ShapeMismatch):
        log([0.0, 1.0], np.ones(3))
    with pytest.raises(ShapeMismatch):
        weights(log([0.0, 1.0]), Target(np.ones(3)))
    assert issubclass(ShapeMismatch, EvaluationError)


def test_kept_promises_have_no_calibration_error_beyond_noise_and_broken_ones_their_whole_gap():
    rng = np.random.default_rng(0)
    predicted = rng.random(4000)
    reward = (rng.random(4000) < predicted).astype(float)
    kept = calibration(predicted, reward)
    broken = calibration(np.clip(predicted * 0.6 + 0.4, 0, 1), reward)
    assert kept.excess < 0.02
    assert broken.ece == pytest.approx(0.2, abs=0.02)
    assert kept.brier < broken.brier
    assert sum(one.rows for one in kept.bins) == 4000
    assert [one.weight for one in kept.bins] == pytest.approx([0.1] * 10, abs=0.001)


def test_calibration_reads_only_rows_with_a_promise_a_reward_and_a_weight():
    predicted = np.array([0.5, np.nan, 0.5, 0.5])
    found = calibration(predicted, np.array([1.0, 1.0, np.nan, 0.0]), np.array([1.0, 1.0, 1.0, 0.0]))
    assert (found.rows, found.ece) == (1, 0.5)
    assert calibration(np.full(2, np.nan), np.zeros(2)) is None


def test_a_segment_that_loses_is_called_worse_and_stands_first():
    rng = np.random.default_rng(0)
    segment = np.arange(2000) % 4
    shares = rng.normal(0.1, 1, 2000) - 0.6 * (segment == 2)
    found = segments(shares, log(np.zeros(2000), segment=segment))
    assert found[0].segment == 2
    assert [one.worse for one in found] == [True, False, False, False]


def test_a_segment_too_small_to_read_is_reported_and_not_called_worse():
    segment = np.array([0] * 500 + [1] * 5)
    shares = np.concatenate((np.random.default_rng(0).normal(0.1, 1, 500), [-3.0, -3.1, -2.9, -3.0, -3.2]))
    small = next(one for one in segments(shares, log(np.zeros(505), segment=segment)) if one.segment == 1)
    assert (small.tested, small.worse) == (False, False)
    assert small.difference == pytest.approx(-3.04)


def test_among_many_equal_segments_some_is_called_worse_no_more_often_than_alpha_says():
    called = 0
    for seed in range(200):
        shares = np.random.default_rng(seed).normal(0, 1, 1000)
        called += any(one.worse for one in segments(shares, log(np.zeros(1000), segment=np.arange(1000) % 20)))
    assert called / 200 < 0.12


def test_segments_that_differ_by_noise_alone_are_drawn_together():
    shares = np.random.default_rng(0).normal(0.1, 1, 1000)
    found = segments(shares, log(np.zeros(1000), segment=np.arange(1000) % 5))
    raw, shrunk = np.ptp([one.difference for one in found]), np.ptp([one.shrunk for one in found])
    assert shrunk < 0.8 * raw
