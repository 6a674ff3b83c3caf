"""What the network takes of the candidates: finite, in its place, and the same whoever stands beside it."""

import numpy as np
import pytest
from hypothesis import given

from policy import evidence, experience, features, inputs
from tests.policy.builders import pool, unhurried, wild

HALF = np.finfo(np.float16)


@unhurried
@given(wild())
def test_the_inputs_are_finite_whatever_was_logged(seen: features.Features):
    case, query = inputs.inputs_of(seen).case, inputs.inputs_of(seen).query
    assert case.shape == (len(seen), len(inputs.CASE))
    assert query.shape == (1, len(inputs.QUERY))
    assert inputs.inputs_of(seen).prior.shape == (len(seen),)
    assert all(part.dtype == np.float32 for part in (case, query, inputs.inputs_of(seen).prior))
    assert all(np.isfinite(part).all() for part in (case, query, inputs.inputs_of(seen).prior))


@pytest.mark.parametrize("number", [0.0, np.nan, -1.0, -2.0, float(HALF.max), float(HALF.min)])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_the_inputs_are_finite_where_all_features_are_the_same(number: float, count: int):
    seen = np.full((count, len(features.NAMES)), number, np.float32)
    for part in (inputs.inputs_of(seen).case, inputs.inputs_of(seen).query, inputs.inputs_of(seen).prior):
        assert np.isfinite(part).all()


def test_every_input_has_one_place():
    assert len(set(inputs.CASE)) == len(inputs.CASE)
    assert len(set(inputs.QUERY)) == len(inputs.QUERY)


def test_the_inputs_of_this_feature_version_are_these():
    # weights know an input by its place alone
    assert inputs.CASE[:14] == (
        "log_rrf",
        "log_agreement",
        "log_posterior",
        "log_semantic_rank",
        "log_keyword_rank",
        "similarity",
        "log_age",
        "log_idle",
        "log_occurrences",
        "log_reuses",
        "log_plan_steps",
        "tag_count",
        "whole_task",
        "reward_unknown",
    )
    assert inputs.CASE[14:] == (
        *evidence.NAMES[1:],
        *(name for name in experience.NAMES if name not in experience.RECORD),
    )


def test_an_unknown_reward_is_told_from_a_reward_of_zero():
    seen = pool(np.random.default_rng(1), 2)
    seen[:, features.COLUMN["reward"]] = [np.nan, 0]
    case = inputs.inputs_of(seen).case
    assert case[:, inputs.CASE.index("reward_unknown")].tolist() == [1, 0]
    posterior = case[:, inputs.CASE.index("log_posterior")]
    assert posterior[0] > posterior[1]


def test_a_case_that_is_in_no_half_of_the_search_stands_behind_all_that_are():
    seen = pool(np.random.default_rng(1), 3)
    seen[:, features.COLUMN["semantic_rank"]] = [1, 64, np.nan]
    place = inputs.inputs_of(seen).case[:, inputs.CASE.index("log_semantic_rank")]
    assert place[0] < place[1] < place[2]


def test_a_candidates_inputs_do_not_depend_on_the_order_of_the_others():
    seen = pool(np.random.default_rng(2), 9)
    shuffled = np.random.default_rng(3).permutation(9)
    assert np.array_equal(inputs.inputs_of(seen).case[shuffled], inputs.inputs_of(seen[shuffled]).case)
    assert inputs.inputs_of(seen).query == pytest.approx(inputs.inputs_of(seen[shuffled]).query)


def test_training_begins_at_the_default():
    begun = inputs.factory(members=2)
    assert not begun.case_part(inputs.inputs_of(pool(np.random.default_rng(4), 64)).case).any()
