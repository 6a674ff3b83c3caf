"""A classifier seems to learn where decisions are split at random."""

import numpy as np
import pytest

from bench.learning.raw import classify
from bench.learning.rules import Judged, split_gap


def test_a_split_by_decision_flatters_where_nothing_can_be_learned():
    rng = np.random.default_rng(0)
    judged = Judged(rng.normal(size=(60, 32)), rng.normal(size=(60, 8, 32)), rng.random((60, 8)) < 0.5, np.arange(60))
    gap = split_gap(judged, classify, rng)
    assert gap.by_decision > 0.9
    assert gap.by_group == pytest.approx(0.5, abs=0.1)
