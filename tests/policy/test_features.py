"""What features keep on their way through the log, and that the network's inputs are numbers whatever they say."""

import warnings
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policy import evidence, experience, features, inputs
from policy.network import CLIP_SD
from tests.policy.builders import nameless, pool, unhurried, wild

HALF = np.finfo(np.float16)
FACTORY_INPUTS = ("log_agreement", "log_rrf")


def test_every_feature_has_one_name_and_one_column():
    assert len(set(features.NAMES)) == len(features.NAMES)
    assert [features.COLUMN[name] for name in features.NAMES] == list(range(len(features.NAMES)))


def test_the_features_are_the_cases_own_the_evidence_and_the_experience_in_that_order():
    assert (*features.OWN, *evidence.NAMES, *experience.NAMES) == features.NAMES


def test_the_names_of_this_feature_version_are_these():
    # who adds, drops or moves a feature makes a new version: logs and weights of the old one mean something else
    assert (features.VERSION, len(features.NAMES), crc32(" ".join(features.NAMES).encode())) == (4, 44, 0x610EF233)


@unhurried
@given(wild())
def test_what_is_logged_comes_back_to_the_bit(seen: features.Features):
    back = features.unpacked(features.packed(seen))
    assert back.dtype == np.float32
    assert np.array_equal(back, seen, equal_nan=True)


@unhurried
@given(st.lists(st.floats(width=32), min_size=len(features.NAMES), max_size=len(features.NAMES)))
def test_what_is_served_is_what_is_logged_however_large(numbers: list[float]):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        served = features.matrix(np.array([numbers], dtype=np.float32))
    assert np.array_equal(features.unpacked(features.packed(served)), served, equal_nan=True)
    assert not np.isinf(served).any()
    assert np.array_equal(np.isnan(served[0]), np.isnan(numbers))


@unhurried
@given(st.floats(float(HALF.smallest_normal), float(HALF.max)))
def test_half_precision_keeps_three_digits(number: float):
    table = np.full((1, len(features.NAMES)), number, np.float32)
    assert features.matrix(table) == pytest.approx(table, rel=1e-3)


def test_the_logs_bytes_are_little_endian_halves_row_by_row():
    table = np.arange(2 * len(features.NAMES), dtype=np.float32).reshape(2, -1)
    logged = features.packed(table)
    assert len(logged) == 2 * table.size
    assert np.frombuffer(logged, "<f2").tolist() == table.ravel().tolist()


def test_no_candidates_are_a_table_without_rows():
    parts = [np.zeros((0, len(names)), np.float32) for names in (features.OWN, evidence.NAMES, experience.NAMES)]
    assert features.matrix(*parts).shape == (0, len(features.NAMES))
    assert features.own([]).shape == (0, len(features.OWN))


def test_a_candidates_own_record_is_in_the_order_of_the_names_and_what_is_missing_is_nan():
    row: dict[str, float | None] = {name: float(place) for place, name in enumerate(features.OWN)}
    table = features.own([row, row | {"reward": None, "similarity": None}])
    assert table[0].tolist() == list(range(len(features.OWN)))
    missing = [name for name, number in zip(features.OWN, table[1], strict=True) if np.isnan(number)]
    assert missing == ["similarity", "reward"]


def test_a_candidate_without_one_of_the_features_is_an_error_not_a_gap():
    row: dict[str, float | None] = dict.fromkeys(features.OWN[1:], 0.0)
    with pytest.raises(KeyError):
        features.own([row])


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
    assert inputs.CASE[14:] == (*evidence.NAMES[1:], *experience.NAMES)


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


@pytest.mark.parametrize("hidden", [0, 3])
def test_the_factory_head_looks_at_its_two_inputs_alone(hidden: int):
    rng = np.random.default_rng(4)
    head = inputs.factory(members=2, hidden=hidden)
    for place, name in enumerate(inputs.CASE):
        before = rng.uniform(-1, 1, (5, len(inputs.CASE))).astype(np.float32)
        after = before.copy()
        after[:, place] += 1
        moved = head.case_part(after) - head.case_part(before)
        assert (np.abs(moved) > 0.5).all() == (name in FACTORY_INPUTS)
        assert moved.any() == (name in FACTORY_INPUTS)


def test_the_factory_head_begins_inside_the_range_that_counts():
    case = inputs.inputs_of(pool(np.random.default_rng(5), 64)).case
    for name in FACTORY_INPUTS:
        assert np.abs(case[:, inputs.CASE.index(name)]).max() < CLIP_SD


def test_evidence_and_experience_fill_the_columns_that_are_theirs():
    cases = evidence.Cases(*[np.ones(2)] * 3, np.ones((2, 1)), *[np.ones(2)] * 2)
    seen = evidence.features(cases, cases, nameless(1))
    past = experience.features(cases, experience.no_history(1))
    assert (seen.shape, past.shape) == ((2, len(evidence.NAMES)), (2, len(experience.NAMES)))
