"""How a slate's outcome is shared, what a logged decision weighs, and what training may not see."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from policy.examples import LARGEST_WEIGHT, importance, shared_credit, split
from tests.policy.builders import unhurried

Slates = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]

groups = arrays.arrays(np.int64, st.integers(0, 40), elements=st.integers(-3, 12))


@st.composite
def slates(draw: st.DrawFn) -> Slates:
    shape = draw(st.tuples(st.integers(0, 5), st.integers(1, 5)))
    agreed = arrays.arrays(np.float32, shape, elements=st.floats(0, 1, width=32) | st.just(np.nan))
    return tuple(draw(each) for each in (*(arrays.arrays(bool, each) for each in (shape, shape, shape[0])), agreed))


@unhurried
@given(slates())
def test_the_shares_of_an_outcome_sum_to_one_or_to_nothing(world: Slates):
    on_slate, used, said, agreed = world
    credit = shared_credit(on_slate, used, said, agreed)
    assert credit.dtype == np.float32
    assert (credit >= 0).all()
    earned = np.where(said, (used & on_slate).any(axis=1), on_slate.any(axis=1))
    assert credit.sum(axis=1) == pytest.approx(earned.astype(float))


@unhurried
@given(slates())
def test_only_what_was_on_the_slate_shares_and_what_agrees_better_earns_more(world: Slates):
    credit, agreed = shared_credit(*world), np.nan_to_num(world[3])
    assert not credit[~world[0]].any()
    for row, known in zip(credit, agreed, strict=True):
        order = np.argsort(known, kind="stable")[row[np.argsort(known, kind="stable")] > 0]
        assert (np.diff(row[order]) >= -1e-6).all()


@pytest.mark.parametrize(
    ("used", "said", "expected"),
    [
        ([0, 0, 0, 0], 0, [1 / 3, 1 / 3, 1 / 3, 0]),
        ([0, 1, 0, 0], 1, [0, 1, 0, 0]),
        ([1, 1, 0, 0], 1, [0.5, 0.5, 0, 0]),
        ([0, 0, 0, 0], 1, [0, 0, 0, 0]),
        ([0, 0, 0, 1], 1, [0, 0, 0, 0]),
        ([1, 0, 0, 0], 0, [1 / 3, 1 / 3, 1 / 3, 0]),
    ],
    ids=["did not say", "one used", "two used", "used none", "used what was not shown", "said nothing after all"],
)
def test_what_the_backend_used_shares_the_outcome_and_all_do_where_it_did_not_say(
    used: list[int], said: int, expected: list[float]
):
    on_slate = np.array([[True, True, True, False]])
    for known in (np.nan, 0.0, 0.7):  # whatever is known of it: all agree alike
        credit = shared_credit(on_slate, np.array([used], bool), np.array([said], bool), np.full((1, 4), known))
        assert credit[0] == pytest.approx(expected)


def test_a_case_that_the_run_did_not_follow_earns_next_to_nothing_beside_one_that_it_did():
    on_slate, nothing = np.ones((1, 4), bool), np.zeros((1, 4), bool)
    credit = shared_credit(on_slate, nothing, np.zeros(1, bool), np.array([[1.0, 0.0, np.nan, 0.5]]))
    assert credit[0] == pytest.approx([1.01 / 1.29, 0.01 / 1.29, 0.01 / 1.29, 0.26 / 1.29])


propensities = arrays.arrays(np.float64, st.integers(1, 60), elements=st.floats(1e-6, 1))


@unhurried
@given(propensities)
def test_importance_has_mean_one(propensity: np.ndarray):
    assert importance(propensity).mean() == pytest.approx(1, rel=1e-4)


@unhurried
@given(propensities)
def test_no_decision_weighs_more_than_so_many_usual_ones(propensity: np.ndarray):
    weight = importance(propensity).astype(float)
    assert (weight > 0).all()
    assert weight.max() <= LARGEST_WEIGHT * np.median(weight) * (1 + 1e-5)


@unhurried
@given(propensities)
def test_what_was_likelier_weighs_no_more(propensity: np.ndarray):
    weight = importance(propensity)[np.argsort(propensity)]
    assert (np.diff(weight) <= 0).all()


def test_where_nothing_is_clipped_the_weights_are_inverse_to_the_chances():
    weight = importance(np.array([0.5, 0.25, 0.5, 0.25]))
    assert weight == pytest.approx(np.array([2, 4, 2, 4]) / 3)


def test_no_decisions_have_no_weights():
    assert importance(np.zeros(0)).shape == (0,)
    assert split(np.zeros(0, np.int64), 0.2).shape == (0,)


@unhurried
@given(groups, st.floats(0, 1))
def test_no_query_is_on_both_sides_of_the_split(group: np.ndarray, share: float):
    held = split(group, share)
    assert held.dtype == bool
    assert not set(group[held]) & set(group[~held])


@unhurried
@given(groups, st.floats(0, 1))
def test_every_query_held_out_is_younger_than_every_one_trained_on(group: np.ndarray, share: float):
    held = split(group, share)
    first = {query: int(np.flatnonzero(group == query)[0]) for query in group}
    if held.any():
        assert min(first[query] for query in group[held]) > max(first[query] for query in group[~held])


@unhurried
@given(groups, st.floats(0, 1))
def test_something_is_always_left_to_train_on(group: np.ndarray, share: float):
    if len(group):
        assert not split(group, share).all()


@pytest.mark.parametrize("rows_a_query", [1, 2, 5])
@pytest.mark.parametrize("share", [0.1, 0.2, 0.5])
def test_about_the_share_that_was_asked_for_is_held_out(rows_a_query: int, share: float):
    held = split(np.arange(1000) // rows_a_query, share)
    assert held.mean() == pytest.approx(share, abs=0.01)
