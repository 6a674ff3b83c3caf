"""The network as it serves, in numpy."""

import numpy as np
import pytest

from policy.network import CLIP_SD, Head
from policy.train import train
from tests.policy.builders import INPUTS, ONE_RIDGE, logged, start
from tests.policy.trained import rng


def one_by_one(head: Head, inputs: np.ndarray) -> list[list[float]]:
    """The case part as sums of numbers, (M, n)."""
    units = list(zip(head.centre, head.scale, strict=True))
    x = [[min(max((v - c) / s, -CLIP_SD), CLIP_SD) for v, (c, s) in zip(row, units, strict=True)] for row in inputs]
    return [[sum(w * v for w, v in zip(member, row, strict=True)) for row in x] for member in head.linear]


def test_the_case_part_is_a_weighted_sum_of_inputs_in_standard_deviations():
    (head,) = train([logged(rng(7), 300)], [1], start(members=3), ONE_RIDGE)
    inputs = (rng(8).normal(size=(64, INPUTS)) * 4).astype(np.float32)  # some beyond what counts
    assert head.case_part(inputs).any()
    assert head.case_part(inputs) == pytest.approx(np.array(one_by_one(head, inputs)), abs=1e-6)
