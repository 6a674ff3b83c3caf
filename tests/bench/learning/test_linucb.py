"""LinUCB explores what it does not know."""

import numpy as np

from bench.learning.linucb import LinUcb


def test_linucb_prefers_what_was_rewarded_and_then_what_is_unknown():
    seen = np.repeat([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], 50, axis=0)
    learned = LinUcb.fit(seen, np.repeat([1.0, 0.0], 50))
    good, bad, unknown = learned.scores(np.eye(3))
    assert good > unknown > bad
