"""Intervals are over users."""

import numpy as np

from bench.learning.scores import by_user


def test_intervals_cluster_by_user():
    values = np.repeat([0.0, 1.0], 500)
    low, high = by_user(values, ["a"] * 500 + ["b"] * 500)
    assert (low, high) == (0, 1)
