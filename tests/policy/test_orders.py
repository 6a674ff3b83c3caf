"""Orders: small worked examples of what each makes of the channels."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from policy.agreement import SAME
from policy.features import Candidates, column, features
from policy.fit import FIRST_ORDER, fit_of
from policy.orders import BLAME, DOUBT, LEAN, MIXED, ORDERS, RRF_K, START, Comparison, learned_weights, mixture, softmax
from policy.replay import comparison_of
from tests.policy.banks import history, moves, shop, terms
from tests.policy.builders import unhurried

CHANNELS = ("words", *MIXED)


def asked(agreement: np.ndarray | None = None, **columns: Any) -> Comparison:
    """Returns one query asked of some runs: channels by name, 0 unless given; ``good`` and ``trust`` 1 unless given.

    The runs are in the order of time.
    """
    count = max(len(each) for each in columns.values())
    flags = np.array([columns.pop("good", [True] * count)], dtype=np.bool_)
    trust = np.array(columns.pop("trust", [1.0] * count), dtype=np.float32)
    near = {name: np.array([columns.pop(name, [0.0] * count)], dtype=np.float32) for name in CHANNELS}
    assert not columns
    agreement = np.eye(count, dtype=np.float32) if agreement is None else agreement
    newer = trust @ np.tril(agreement >= SAME, -1)
    return Comparison(near, flags, trust, agreement, ~flags, newer[None])


def scores(name: str, comparison: Comparison, weights: np.ndarray = START) -> np.ndarray:
    return ORDERS[name](comparison, mixture(comparison, weights))[0]


def same(*plans: int) -> np.ndarray:
    """Returns the agreement of runs of which those with one number have one plan."""
    return np.equal.outer(plans, plans).astype(np.float32)


def test_the_simplest_order_is_named_first_and_a_bank_begins_with_the_vote():
    assert list(ORDERS) == ["words", "rare", "meaning", "fused", "telling", "mixture", "vote", "outcomes"]
    assert FIRST_ORDER == "vote"


@pytest.mark.parametrize("name", ["words", "rare", "meaning", "telling"])
def test_an_order_of_one_channel_is_that_channel(name: str):
    assert scores(name, asked(**{name: [0.25, 0.75, 0.5]})).tolist() == [0.25, 0.75, 0.5]


# Mixture


def test_the_mixture_is_the_weighted_sum_of_its_channels():
    comparison = asked(rare=[1, 0], telling=[0, 1], meaning=[0.5, 0.5], recent=[0, -2], words=[9, 9])
    found = mixture(comparison, np.array([1, 2, 4, 8], np.float32))
    assert found.tolist() == [[1 + 2, 2 + 2 - 16]]


def test_each_query_may_have_weights_of_its_own():
    near = {name: np.ones((2, 3), np.float32) for name in CHANNELS}
    all_good, none = np.ones((2, 3), bool), np.zeros((2, 3), np.float32)
    comparison = Comparison(near, all_good, np.ones(3, np.float32), np.eye(3, dtype=np.float32), ~all_good, none)
    found = mixture(comparison, np.array([[1, 1, 1, 1], [0, 2, 0, 0]], np.float32))
    assert found.tolist() == [[4, 4, 4], [2, 2, 2]]


@given(st.integers(0, 3), st.floats(0.125, 1, width=32))
def test_a_run_that_is_nearer_in_one_channel_and_as_near_in_all_others_ranks_higher_in_the_mixture(
    channel: int, more: float
):
    one, other = scores("mixture", asked(**{MIXED[channel]: [more, 0.0]}))
    assert one > other


# Softmax


def test_a_softmax_shares_one_by_the_exponentials():
    found = softmax(np.log(np.array([[1.0, 2.0, 5.0]], np.float32)), np.ones((1, 3), bool))
    assert found[0].tolist() == pytest.approx([1 / 8, 2 / 8, 5 / 8])


def test_who_is_not_in_the_mask_has_no_share_and_without_anybody_there_are_none():
    mask = np.array([[True, False, True], [False] * 3])
    found = softmax(np.array([[1.0, 9.0, 1.0], [3.0, 4.0, 5.0]], np.float32), mask)
    assert found.tolist() == [[0.5, 0.0, 0.5], [0.0, 0.0, 0.0]]


def test_of_no_runs_there_are_no_shares():
    assert softmax(np.zeros((2, 0), np.float32), np.zeros((2, 0), bool)).shape == (2, 0)


@unhurried
@given(arrays.arrays(np.float32, (3, 5), elements=st.floats(-1000, 1000, width=32)), arrays.arrays(bool, (3, 5)))
def test_shares_sum_to_one_however_large_the_scores(numbers: np.ndarray, mask: np.ndarray):
    found = softmax(numbers, mask)
    assert found.sum(axis=1) == pytest.approx(mask.any(axis=1).astype(float), abs=1e-5)
    assert (found >= 0).all()
    assert not found[~mask].any()


# Fusion


def test_fusion_adds_the_reciprocals_of_the_ranks_by_words_and_by_meaning():
    found = scores("fused", asked(rare=[0.9, 0.5, 0.1], meaning=[0.1, 0.9, 0.5]))
    ranks = ((1, 3), (2, 1), (3, 2))
    assert found.tolist() == pytest.approx([sum(1 / (RRF_K + rank) for rank in each) for each in ranks])


def test_only_runs_that_went_well_take_a_rank():
    whole = scores("fused", asked(rare=[0.9, 0.5], meaning=[0.9, 0.5]))
    found = scores("fused", asked(rare=[0.9, 1.0, 0.5], meaning=[0.9, 1.0, 0.5], good=[True, False, True]))
    assert found[[0, 2]].tolist() == whole.tolist()


def test_runs_that_are_as_near_as_each_other_share_a_rank():
    found = scores("fused", asked(rare=[0.5, 0.9, 0.5, 0.1], meaning=[0.0] * 4))
    assert found.tolist() == pytest.approx([1 / (RRF_K + rank) + 1 / (RRF_K + 1) for rank in (2, 1, 2, 4)])


def test_fusion_looks_at_ranks_and_not_at_distances():
    far, near = (scores("fused", asked(rare=[0.9, each], meaning=[0.9, each])) for each in (0.1, 0.8))
    assert far.tolist() == near.tolist()


# Vote


def test_a_vote_is_the_expected_agreement_with_the_neighbours_leaning_to_the_near():
    comparison = asked(same(0, 0, 1), rare=np.log([1, 2, 5]) / START[0])
    found = scores("vote", comparison)
    lean = np.exp(LEAN * np.log([1 / 5, 2 / 5, 1]))
    assert found.tolist() == pytest.approx(((DOUBT + np.array([3, 3, 5]) / 8) * lean).tolist())


def test_of_two_plans_as_good_as_each_other_the_nearest_run_comes_first():
    halves = np.array([[1, 0.5, 0.5], [0.5, 1, 0.5], [0.5, 0.5, 1]], np.float32)
    assert np.argsort(-scores("vote", asked(halves, rare=[0.5, 0.9, 0.7]))).tolist() == [1, 2, 0]


def test_runs_that_no_neighbour_agrees_with_are_told_by_nearness():
    found = scores("vote", asked(rare=[90, 10, 30, 20]))
    assert np.argsort(-found).tolist() == [0, 2, 3, 1]


def test_two_neighbours_with_one_plan_outvote_a_nearer_one_with_another():
    found = scores("vote", asked(same(0, 0, 1), rare=[0.8, 0.8, 0.9]))
    assert int(found.argmax()) in {0, 1}
    assert int(scores("mixture", asked(same(0, 0, 1), rare=[0.8, 0.8, 0.9])).argmax()) == 2


@pytest.mark.parametrize("nearest", [0, 1, 2])
def test_of_several_runs_with_one_plan_the_nearest_is_told_first(nearest: int):
    rare = [0.5, 0.4, 0.3]
    rare[nearest] = 0.6
    found = scores("vote", asked(same(0, 0, 0), rare=rare))
    assert np.argsort(-found).tolist() == np.argsort(-np.array(rare)).tolist()


def test_a_plan_that_agrees_in_part_has_a_part_of_the_votes():
    agreement = np.array([[1, 0.5, 0], [0.5, 1, 0], [0, 0, 1]], np.float32)
    found = scores("vote", asked(agreement, rare=[1, -9, -9]))
    lean = np.exp(-10 * LEAN * START[0])
    assert found.tolist() == pytest.approx([1 + DOUBT, (0.5 + DOUBT) * lean, DOUBT * lean], abs=1e-5)


def test_a_run_that_failed_has_no_vote_though_it_has_its_neighbours():
    found = scores("vote", asked(same(0, 0, 1), rare=[0.5, 0.9, 0.5], good=[True, False, True]))
    assert found.tolist() == pytest.approx([0.5 + DOUBT] * 3)


def test_a_neighbour_votes_by_its_trust():
    found = scores("vote", asked(rare=[0.5, 0.5], trust=[0.25, 1.0]))
    assert found.tolist() == pytest.approx([0.2 + DOUBT, 0.8 + DOUBT])


def test_four_neighbours_of_a_quarters_trust_weigh_as_much_as_one_of_whole_trust():
    found = scores("vote", asked(same(0, 0, 0, 0, 1), rare=[0.5] * 5, trust=[0.25] * 4 + [1.0]))
    assert found.tolist() == pytest.approx([0.5 + DOUBT] * 5)


# Outcomes


def test_without_a_failed_run_outcomes_are_the_vote():
    comparison = asked(rare=[0.5, 0.2, 0.9], agreement=same(1, 2, 1))
    assert np.array_equal(scores("outcomes", comparison), scores("vote", comparison))


def test_a_plan_that_failed_on_a_like_task_loses_by_its_share_of_failures():
    comparison = asked(good=[True, False, True], rare=[0.5, 0.5, 0.5], agreement=same(1, 1, 2))
    part = scores("outcomes", comparison) / scores("vote", comparison)
    worked, failed = 1 / 3 / 2, 1 / 3  # a newer run with the plan halves what the first says of it
    assert part[0] == pytest.approx((DOUBT + worked) / (DOUBT + worked + BLAME * failed), rel=1e-5)
    assert part[2] == 1


@pytest.mark.parametrize(("good", "first"), [([True, True, False, True], 3), ([False, True, True, True], 0)])
def test_the_newest_outcomes_of_a_plan_count_most(good: list[bool], first: int):
    comparison = asked(good=good, rare=[0.5] * 4, agreement=same(1, 1, 1, 2))
    found = np.where(good, scores("outcomes", comparison), 0)
    assert (found[3] > found[:3].max()) == (first == 3)


def test_a_failure_of_little_trust_costs_a_plan_little():
    def lost(trust: float) -> float:
        comparison = asked(good=[True, False, True], rare=[0.5] * 3, trust=[1, trust, 1], agreement=same(1, 1, 2))
        return float(1 - scores("outcomes", comparison)[0] / scores("vote", comparison)[0])

    assert lost(0.25) < 0.7 * lost(1)


# The fit of the mixture


def test_the_weights_stay_where_they_begin_without_a_question_to_learn_from():
    comparison = comparison_of(history(shop(12)))
    assert learned_weights(comparison, np.zeros(12, bool)).tolist() == pytest.approx(START.tolist())


def test_a_channel_that_tells_plans_apart_gains_weight_and_one_that_misleads_loses_it():
    rng = np.random.default_rng(0)
    count, kinds = 80, rng.integers(3, size=80)
    near = {name: np.zeros((count, count), np.float32) for name in CHANNELS}
    near["meaning"] = np.equal.outer(kinds, kinds).astype(np.float32)
    near["rare"] = 1 - near["meaning"]
    before = np.tri(count, k=-1, dtype=np.bool_)
    none = np.zeros((count, count), np.float32)
    comparison = Comparison(near, before, np.ones(count, np.float32), near["meaning"], before & False, none)
    found = dict(zip(MIXED, learned_weights(comparison, np.ones(count, bool)) / START, strict=True))
    assert found["meaning"] > 1.2
    assert found["rare"] < 0.9
    assert (found["telling"], found["recent"]) == (pytest.approx(1), pytest.approx(1))


def test_the_weights_are_positive_and_finite_whatever_the_bank_says():
    runs = shop(60)
    plans = [plan for _, plan in runs]
    np.random.default_rng(1).shuffle(plans)
    shuffled = history([(task, plan) for (task, _), plan in zip(runs, plans, strict=True)])
    found = learned_weights(comparison_of(shuffled), shuffled.went_well)
    assert np.isfinite(found).all()
    assert (found > 0).all()


# A bank that was never replayed


def candidates(runs: list[tuple[str, str]], times: np.ndarray) -> Candidates:
    count = len(runs)
    return Candidates(
        times=times,
        terms=[terms(task) for task, _ in runs],
        moves=[moves(plan) for _, plan in runs],
        similarity=np.full(count, np.nan, np.float32),
        reward=np.ones(count, np.float32),
        record=np.ones(count, np.float32),
        steps=np.ones(count, np.float32),
        proven=np.ones(count, bool),
        failed=np.zeros(count, bool),
    )


def test_of_a_bank_that_was_never_replayed_the_candidates_stand_for_it():
    runs, query = shop(12), terms("anna writes about the lamp that is early")
    known = candidates(runs, np.arange(12) * 3600.0)
    alone, replayed = features(query, known, None), features(query, known, fit_of(history(runs)))
    assert np.array_equal(alone.features, replayed.features, equal_nan=True)


def test_the_candidates_of_such_a_bank_are_read_in_the_order_of_time_whatever_order_they_come_in():
    runs = shop(12)
    places = np.random.default_rng(0).permutation(12)
    known = candidates([runs[place] for place in places], places * 3600.0)
    found, expected = known.history(), history(runs)
    assert found.times.tolist() == expected.times.tolist()
    assert [each.tolist() for each in found.terms] == [each.tolist() for each in expected.terms]
    assert [each.tolist() for each in found.moves] == [each.tolist() for each in expected.moves]


def test_in_such_a_bank_the_vote_ranks():
    seen = features(terms("anna writes about the lamp that is early"), candidates(shop(12), np.arange(12.0)), None)
    votes, places = column(seen.features, "vote"), column(seen.features, "order")
    assert votes[places == 0] == votes.max()
    assert (np.diff(votes[np.argsort(-places)]) <= 0).all()
