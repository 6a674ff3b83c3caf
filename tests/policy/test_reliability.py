"""Promises against rewards, and segments that lose."""

import numpy as np
import pytest

from policy.reliability import calibration, segments
from tests.policy.decision_logs import log


def test_kept_promises_have_no_calibration_error_beyond_noise_and_broken_ones_their_whole_gap():
    rng = np.random.default_rng(0)
    predicted = rng.random(4000)
    reward = (rng.random(4000) < predicted).astype(float)
    kept = calibration(predicted, reward)
    broken = calibration(np.clip(predicted * 0.6 + 0.4, 0, 1), reward)
    assert kept.excess < 0.02
    assert broken.ece == pytest.approx(0.2, abs=0.02)
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
