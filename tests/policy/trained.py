"""What the tests of training ask of a head."""

from dataclasses import replace

import numpy as np

from policy.examples import Examples
from policy.network import Head
from tests.policy.builders import Toy, toy


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def flipped(examples: Examples) -> Examples:
    return replace(examples, reward=1 - examples.reward)


def residual(head: Head, bank: Toy) -> np.ndarray:
    """What the head adds to the order, relative to each query's mean: (queries, candidates)."""
    parts = np.stack([head.case_part(inputs).mean(axis=0) for inputs in bank.inputs])
    return parts - parts.mean(axis=1, keepdims=True)


def moved(one: Head, other: Head, bank: Toy) -> float:
    """Root mean square of the difference of two heads."""
    return float(np.sqrt(np.square(residual(one, bank) - residual(other, bank)).mean()))


PROBE = toy(rng(99), 200)
