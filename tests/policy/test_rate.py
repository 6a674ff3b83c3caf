"""The interval of a rate."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policy.rate import wilson


def test_the_interval_is_the_one_of_the_literature():
    # 81 of 263: Newcombe 1998, table I, method 3
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)


def test_the_interval_reaches_a_rate_of_0_and_of_1():
    ends = {(wilson(0, trials)[0], wilson(trials, trials)[1]) for trials in range(1, 500)}
    assert ends == {(0, 1)}


@given(trials=st.integers(0, 10**9), data=st.data())
def test_the_rate_lies_in_its_interval_and_that_between_0_and_1(trials: int, data: st.DataObject):
    hits = data.draw(st.integers(0, trials))
    low, high = wilson(hits, trials)
    assert 0 <= low <= high <= 1
    assert not trials or low <= hits / trials <= high


def test_more_trials_are_surer():
    assert wilson(10, 100)[0] < wilson(100, 1_000)[0] < wilson(1_000, 10_000)[0] < 0.1
