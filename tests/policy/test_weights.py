"""Weights keep their bytes, and bytes that are not theirs are refused by name."""

import hashlib

import numpy as np
import pytest
from safetensors.numpy import save

from policy.network import Head, untrained
from policy.weights import WeightsCorrupt, WrongFeatureVersion, WrongNetwork, pack, unpack


def some(seed: int = 1) -> Head:
    rng = np.random.default_rng(seed)
    shapes = {name: array.shape for name, array in untrained(4, 2, members=2).arrays().items()}
    return Head(**{name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()})


def test_what_was_packed_is_unpacked():
    head = some()
    back = unpack(*pack(head, 7), feature_version=7)
    for name, array in head.arrays().items():
        assert np.array_equal(array, back.arrays()[name])


def test_the_same_weights_are_the_same_bytes():
    assert pack(some(), 1) == pack(some(), 1)


def test_weights_of_another_feature_version_are_refused():
    with pytest.raises(WrongFeatureVersion):
        unpack(*pack(some(), 1), feature_version=2)


def test_weights_of_a_network_with_other_parts_are_refused_by_their_names():
    hidden = {"hidden": np.zeros((2, 4, 3), np.float32), "output": np.zeros((2, 3), np.float32)}
    blob = save(some().arrays() | hidden | {"feature_version": np.array([1], np.int64)})
    with pytest.raises(WrongNetwork, match="unknown parts: hidden, output"):
        unpack(blob, hashlib.sha256(blob).digest(), feature_version=1)


@pytest.mark.parametrize("at", [0, 8, 200, -1])
def test_one_changed_byte_is_found(at: int):
    blob, checksum = pack(some(), 1)
    changed = bytearray(blob)
    changed[at] ^= 1
    with pytest.raises(WeightsCorrupt):
        unpack(bytes(changed), checksum, feature_version=1)


@pytest.mark.parametrize("blob", [b"", b"no tensors", save({"linear": np.zeros(1, np.float32)})])
def test_bytes_that_are_no_weights_are_refused_though_their_checksum_is_right(blob: bytes):
    with pytest.raises(WeightsCorrupt):
        unpack(blob, hashlib.sha256(blob).digest(), feature_version=1)


def test_an_untrained_head_leaves_every_candidate_where_it_was():
    inputs = np.random.default_rng(1).normal(size=(9, 4)).astype(np.float32)
    assert not untrained(4, 2, members=3).case_part(inputs).any()


def test_the_case_part_does_not_see_the_query():
    inputs = np.random.default_rng(1).normal(size=(9, 4)).astype(np.float32)
    head = some()
    changed = Head(**(head.arrays() | {"query_bias": head.query_bias + 5}))
    assert np.array_equal(head.case_part(inputs), changed.case_part(inputs))
