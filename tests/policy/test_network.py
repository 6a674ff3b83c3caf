"""The network as it serves, in numpy."""

import numpy as np
import pytest
import torch

from policy.network import CLIP_SD, Head
from policy.train import train
from tests.policy.builders import INPUTS, QUICK, logged, start
from tests.policy.trained import rng


def in_torch(head: Head, inputs: np.ndarray) -> np.ndarray:
    """The case part as a torch program, (M, n)."""
    weight = {name: torch.from_numpy(array) for name, array in head.arrays().items()}
    x = torch.clamp((torch.from_numpy(inputs) - weight["centre"]) / weight["scale"], -CLIP_SD, CLIP_SD)
    return torch.stack([x @ linear for linear in weight["linear"]]).numpy()


def test_numpy_serves_what_torch_computes():
    (head,) = train([logged(rng(7), 300)], QUICK, [1], start(members=3))
    inputs = (rng(8).normal(size=(64, INPUTS)) * 4).astype(np.float32)  # some beyond what counts
    assert head.case_part(inputs).any()
    assert head.case_part(inputs) == pytest.approx(in_torch(head, inputs), abs=1e-6)
