"""What the network takes of the candidates: finite, in its place, and the same whoever stands beside it."""

import numpy as np
import pytest
from hypothesis import given

from policy import features, inputs
from policy.inputs import Inputs
from policy.network import untrained
from tests.policy.builders import pool, unhurried, wild

HALF = np.finfo(np.float16)


@unhurried
@given(wild())
def test_the_inputs_are_finite_whatever_was_logged(seen: features.Features):
    case, query = Inputs(seen).case, Inputs(seen).query
    assert case.shape == (len(seen), len(inputs.CASE))
    assert query.shape == (1, len(inputs.QUERY))
    assert Inputs(seen).prior.shape == (len(seen),)
    assert all(part.dtype == np.float32 for part in (case, query, Inputs(seen).prior))
    assert all(np.isfinite(part).all() for part in (case, query, Inputs(seen).prior))


@pytest.mark.parametrize("number", [0.0, np.nan, -1.0, -2.0, float(HALF.max), float(HALF.min)])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_the_inputs_are_finite_where_all_features_are_the_same(number: float, count: int):
    seen = np.full((count, len(features.NAMES)), number, np.float32)
    for part in (Inputs(seen).case, Inputs(seen).query, Inputs(seen).prior):
        assert np.isfinite(part).all()


def test_every_input_has_one_place():
    assert len(set(inputs.CASE)) == len(inputs.CASE)
    assert len(set(inputs.QUERY)) == len(inputs.QUERY)


def test_the_inputs_of_this_feature_version_are_these():
    # weights know an input by its place alone
    assert (features.VERSION, inputs.CASE) == (
        8,
        ("similarity", "vote", "reward", "record", "step_count"),
    )


def test_an_unknown_reward_counts_as_a_middling_one():
    seen = pool(np.random.default_rng(1), 3)
    seen[:, features.COLUMN["reward"]] = [np.nan, 0, inputs.UNKNOWN_REWARD]
    case = Inputs(seen).case
    assert case[:, inputs.CASE.index("reward")].tolist() == [inputs.UNKNOWN_REWARD, 0, inputs.UNKNOWN_REWARD]


def test_a_count_is_seen_in_logarithms():
    seen = pool(np.random.default_rng(1), 3)
    seen[:, features.COLUMN["step_count"]] = [0, 1, 99]
    steps = Inputs(seen).case[:, inputs.CASE.index("step_count")]
    assert steps == pytest.approx(np.log([1, 2, 100]))


def test_the_prior_falls_by_one_step_for_each_place_of_the_order_that_serves():
    seen = pool(np.random.default_rng(1), 5)
    seen[:, features.COLUMN["order"]] = [-2, 0, -1, -4, -3]
    assert Inputs(seen).prior.tolist() == pytest.approx([-inputs.STEP * np.log1p(place) for place in (2, 0, 1, 4, 3)])


def test_a_query_is_described_by_its_best_and_by_the_mean_of_those_that_would_be_shown():
    seen = pool(np.random.default_rng(5), 9)
    case, query = Inputs(seen).case, dict(zip(inputs.QUERY, Inputs(seen).query[0], strict=True))
    shown = np.argsort(-features.column(seen, "order"), kind="stable")[: inputs.FIRST]
    for place, name in enumerate(inputs.CASE):
        assert query[f"first_{name}"] == pytest.approx(case[shown, place].mean(), abs=1e-5)
    assert query["top_similarity"] == case[:, inputs.CASE.index("similarity")].max()
    assert query["log_candidates"] == pytest.approx(np.log(9))


def test_a_candidates_inputs_do_not_depend_on_the_order_of_the_others():
    seen = pool(np.random.default_rng(2), 9)
    shuffled = np.random.default_rng(3).permutation(9)
    assert np.array_equal(Inputs(seen).case[shuffled], Inputs(seen[shuffled]).case)
    assert Inputs(seen).query == pytest.approx(Inputs(seen[shuffled]).query)


def test_training_begins_at_the_order_that_serves():
    begun, seen = untrained(len(inputs.CASE), len(inputs.QUERY), 2), Inputs(pool(np.random.default_rng(4), 64))
    assert not begun.case_part(seen.case).any()
    ranked = np.argsort(-(seen.prior + begun.case_part(seen.case).mean(axis=0)), kind="stable")
    assert ranked.tolist() == np.argsort(-features.column(seen.features, "order"), kind="stable").tolist()
