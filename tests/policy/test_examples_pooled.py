"""The examples of several users as one: no user weighs more than the cap."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from policy.examples import capped_shares, joined, pooled
from tests.policy.builders import logged, unhurried
from tests.policy.trained import rng

sizes = arrays.arrays(np.float64, st.integers(0, 40), elements=st.integers(0, 10_000).map(float))


@unhurried
@given(sizes, st.floats(0.01, 1))
def test_shares_sum_to_one_and_none_passes_the_cap_that_enough_users_allow(size: np.ndarray, cap: float):
    shares = capped_shares(size, cap)
    users = int((size > 0).sum())
    assert shares.shape == size.shape
    assert shares.sum() == pytest.approx(min(users, 1))
    assert (shares >= 0).all()
    assert not shares[size == 0].any()
    assert shares.max(initial=0) <= max(cap, 1 / max(users, 1)) + 1e-9


@unhurried
@given(sizes, st.floats(0.01, 1))
def test_who_has_more_decisions_has_no_smaller_share(size: np.ndarray, cap: float):
    assert (np.diff(capped_shares(size, cap)[np.argsort(size)]) >= -1e-12).all()


def test_below_the_cap_shares_are_as_the_sizes():
    assert capped_shares(np.array([10.0, 20, 10]), 0.5) == pytest.approx([0.25, 0.5, 0.25])
    assert capped_shares(np.array([60.0, 20, 20]), 0.4) == pytest.approx([0.4, 0.3, 0.3])


def test_a_user_with_several_agents_weighs_as_much_as_their_decisions_together():
    agents = [logged(rng(28), 30), logged(rng(29), 10)]
    together = pooled(agents, 1.0)
    assert together.weight == pytest.approx(joined(agents).weight)


def test_pooled_users_weigh_by_their_capped_shares():
    users = [logged(rng(seed), size) for seed, size in enumerate((600, 200, 0, 200))]
    weight = pooled(users, 0.4).weight
    by_user = np.array([part.sum() for part in np.split(weight, [600, 800, 800])])
    assert by_user / weight.sum() == pytest.approx([0.4, 0.3, 0, 0.3], abs=1e-5)
    assert weight.max() < 2
