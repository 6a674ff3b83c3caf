"""What features keep on their way through the log, and that the network's inputs are numbers whatever they say."""

import warnings
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policy import evidence, experience, features
from tests.policy.builders import nameless, unhurried, wild

HALF = np.finfo(np.float16)


def test_every_feature_has_one_name_and_one_column():
    assert len(set(features.NAMES)) == len(features.NAMES)
    assert [features.COLUMN[name] for name in features.NAMES] == list(range(len(features.NAMES)))


def test_the_features_are_the_cases_own_the_evidence_and_the_experience_in_that_order():
    assert (*features.OWN, *evidence.NAMES, *experience.NAMES) == features.NAMES


def test_the_names_of_this_feature_version_are_these():
    # who adds, drops or moves a feature makes a new version: logs and weights of the old one mean something else
    assert (features.VERSION, len(features.NAMES), crc32(" ".join(features.NAMES).encode())) == (6, 45, 0x133ECBFF)


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


def test_evidence_and_experience_fill_the_columns_that_are_theirs():
    cases = evidence.Cases(*[np.ones(2)] * 3, np.ones((2, 1)), *[np.ones(2)] * 2)
    seen = evidence.features(cases, cases, nameless(1))
    past = experience.features(cases, experience.no_history(1))
    assert (seen.shape, past.shape) == ((2, len(evidence.NAMES)), (2, len(experience.NAMES)))
