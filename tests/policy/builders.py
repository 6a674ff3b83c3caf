"""Candidates and toy banks for the tests of features and training."""

from dataclasses import dataclass

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from policy import features
from policy.examples import Examples, shared_credit
from policy.network import Head, untrained

PLACES = 4
INPUTS = 6
TASTE = np.array([1.2, -0.9, 0.0, 0.0, 0.0, 0.0])
"""What the toy bank's inputs are worth, in log odds; the default knows the third alone, which is worth nothing."""
ONE_RIDGE = (100.0,)
"""A pull that lets a head move on a few hundred decisions, without a choice of ridges."""
unhurried = settings(deadline=None, max_examples=60)
"""For a machine that is busy with something else."""


def pool(rng: np.random.Generator, size: int | None = None) -> features.Features:
    """Returns candidates as retrieval finds them: a third without a vector, some of unknown reward, some failed."""
    n = int(rng.integers(1, 65)) if size is None else size
    failed = rng.random(n) < 0.1
    place = np.empty(n)
    place[np.lexsort((rng.random(n), failed))] = np.arange(n)
    known = {
        "order": -place,
        "similarity": np.where(rng.random(n) < 1 / 3, np.nan, rng.uniform(-1, 1, n)),
        "reward": rng.choice([0, 0.5, 1, np.nan], n),
        "step_count": rng.integers(0, 20, n),
        "proven": (rng.random(n) < 0.8) & ~failed,
        "failed": failed,
    }
    table = rng.random((n, len(features.NAMES))).astype(np.float32)  # shares and cosines
    for name, values in known.items():
        table[:, features.COLUMN[name]] = values
    return features.unpacked(features.packed(table))


@st.composite
def wild(draw: st.DrawFn) -> features.Features:
    """Anything that can be read from a log, whether or not it could have been written."""
    shape = st.tuples(st.integers(0, 5), st.just(len(features.NAMES)))
    table = draw(arrays.arrays(np.float16, shape, elements=st.floats(width=16, allow_infinity=False)))
    return table.astype(np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class Toy:
    """Candidates whose worth is known: (queries, candidates, INPUTS), and what the default makes of them."""

    inputs: NDArray[np.float32]
    prior: NDArray[np.float32]
    worth: NDArray[np.float64]

    def value(self, scores: NDArray[np.floating]) -> float:
        """Mean worth of the PLACES best by the scores, (queries, candidates)."""
        top = np.argsort(-scores, axis=1, kind="stable")[:, :PLACES]
        return float(np.take_along_axis(self.worth, top, axis=1).mean())

    def learned(self, head: Head) -> NDArray[np.float64]:
        """The scores by which a head orders the candidates."""
        return np.stack([p + head.case_part(x).mean(axis=0) for x, p in zip(self.inputs, self.prior, strict=True)])


def toy(rng: np.random.Generator, queries: int, candidates: int = 16) -> Toy:
    """A toy bank."""
    inputs = rng.normal(size=(queries, candidates, INPUTS)).astype(np.float32)
    return Toy(inputs, inputs[..., 2] * 0.5, inputs @ TASTE)


def logged(rng: np.random.Generator, size: int, *, candidates: int = 16) -> Examples:
    """Slates of a toy bank drawn at random, each with one Bernoulli outcome, as training sees them."""
    bank = toy(rng, size, candidates)
    rows, slate = np.arange(size)[:, None], rng.random((size, candidates)).argsort(axis=1)[:, :PLACES]
    nothing = np.zeros((size, PLACES))
    credit = shared_credit(np.ones((size, PLACES), bool), nothing.astype(bool), np.zeros(size, bool), nothing)
    hardness = rng.normal(size=(size, 1)).astype(np.float32)
    odds = bank.worth[rows, slate].mean(axis=1) + hardness[:, 0]
    return Examples(
        inputs=bank.inputs[rows, slate],
        prior=bank.prior[rows, slate],
        credit=credit,
        query=hardness,
        reward=(rng.random(size) < 1 / (1 + np.exp(-odds))).astype(np.float32),
        weight=np.ones(size, np.float32),
        group=np.arange(size, dtype=np.int64) // 2,
    )


def start(members: int = 2) -> Head:
    """The untrained head of a toy bank."""
    return untrained(INPUTS, 1, members)
