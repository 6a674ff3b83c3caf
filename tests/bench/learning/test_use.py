"""Use alone: the order before the first decision and after some, of the same queries; a fall is told from no fall."""

from dataclasses import replace

import numpy as np

from bench.learning import banking, use
from tests.bench.learning.conftest import TINY


def test_each_curve_begins_before_the_first_decision_and_every_later_point_is_compared_with_that(
    corpus: banking.Corpus,
):
    few = replace(corpus, test=corpus.test.take(np.arange(0, len(corpus.test.texts), 40)))
    found = {each.name: each for each in use.on_reuse(few, TINY, (0,), (0, 100))}
    for places in use.PLACES:
        before, after = (found[f"use reuse, slates of {places}: after {mark} decisions"] for mark in (0, 100))
        change = found[f"use reuse, slates of {places}: change by 100 decisions, at best"]
        assert change.interval is not None
        low, high = change.interval
        assert low <= after.value - before.value <= high == change.value
        assert change.reached is (high >= 0)
