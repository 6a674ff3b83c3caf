"""Candidates, plans and toy banks for the tests of features and training."""

from dataclasses import dataclass

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from policy import features
from policy.evidence import Cases, Tools
from policy.examples import Examples, shared_credit
from policy.network import Head, untrained
from policy.train import Plan

PLACES = 4
INPUTS = 6
TASTE = np.array([1.2, -0.9, 0.0, 0.0, 0.0, 0.0])
"""What the toy bank's inputs are worth, in log odds; the default knows the third alone, which is worth nothing."""
QUICK = Plan(steps=60, rate=0.05, ridge=20.0)
unhurried = settings(deadline=None, max_examples=60)
"""For a machine that is busy with something else."""


def pool(rng: np.random.Generator, size: int | None = None) -> features.Features:
    """Candidates as retrieval finds them: ranks of two halves, fused; unknown rewards, some reuse."""
    n = int(rng.integers(1, 65)) if size is None else size
    table = np.abs(rng.normal(size=(n, len(features.NAMES)))).astype(np.float32)
    semantic, keyword = ranks(rng, n), ranks(rng, n)
    count = rng.integers(0, 5, n)
    known = {
        "semantic_rank": semantic,
        "keyword_rank": keyword,
        "similarity": np.where(np.isnan(semantic), np.nan, rng.uniform(-1, 1, n)),
        "rrf": 1 / (60 + np.nan_to_num(semantic, nan=65)) + 1 / (60 + np.nan_to_num(keyword, nan=65)),
        "reward": rng.choice([0, 0.5, 1, np.nan], n),
        "reuse_count": count,
        "near_count": count,
        "near_reward": count * rng.choice([0, 0.5, 1], n),
        "usual_reward": rng.choice([0, 0.5, 1, np.nan]),
        "unknown": rng.random(),  # the query's, so all have the same
    }
    for name, values in known.items():
        table[:, features.COLUMN[name]] = values
    return features.matrix(table)


def ranks(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
    """1-based, NaN for a third of them."""
    return np.where(rng.random(n) < 1 / 3, np.nan, rng.permutation(n) + 1.0)


@st.composite
def wild(draw: st.DrawFn) -> features.Features:
    """Anything that can be read from a log, whether or not it could have been written."""
    shape = st.tuples(st.integers(0, 5), st.just(len(features.NAMES)))
    table = draw(arrays.arrays(np.float16, shape, elements=st.floats(width=16, allow_infinity=False)))
    return table.astype(np.float32)


def plans(tools: int, largest: int = 10, most: int = 6) -> st.SearchStrategy[NDArray[np.float64]]:
    """Up to ``most`` plans as counts of their tools."""
    shape = st.tuples(st.integers(0, most), st.just(tools))
    return arrays.arrays(np.float64, shape, elements=st.integers(0, largest).map(float))


def cases(effects: NDArray[np.float64], **known: object) -> Cases:
    """Successes with these plans, equally near, unless it is told otherwise."""
    n = len(effects)
    column = {"similarity": 0.6, "keyword_rank": np.nan, "reward": 1.0, "steps": 3.0, "errors": 0.0} | known
    filled = {name: np.array(np.broadcast_to(np.asarray(value, float), n)) for name, value in column.items()}
    return Cases(effects=effects, **filled)


@st.composite
def any_cases(draw: st.DrawFn, tools: int) -> Cases:
    """Cases of which anything may be unknown."""
    effects = draw(plans(tools))
    n = len(effects)

    def column(low: float, high: float) -> NDArray[np.float64]:
        numbers = st.one_of(st.floats(low, high), st.sampled_from([low, high]))
        return np.array(draw(st.lists(numbers, min_size=n, max_size=n)), dtype=np.float64)

    def gaps(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.where(draw(arrays.arrays(bool, n)), np.nan, values)

    return Cases(
        similarity=gaps(column(-1, 1)),
        keyword_rank=gaps(np.floor(column(1, 64))),
        reward=gaps(column(0, 1)),
        effects=effects,
        steps=np.floor(column(0, 50)),
        errors=np.floor(column(0, 50)),
    )


def nameless(tools: int) -> Tools:
    """Tools of whose names nothing is known."""
    return Tools(np.zeros((tools, 0)), np.zeros(0), np.zeros(tools))


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
        empty=np.zeros(size, bool),
        group=np.arange(size, dtype=np.int64) // 2,
    )


def start(members: int = 2) -> Head:
    """The untrained head of a toy bank."""
    return untrained(INPUTS, 1, members)
