"""Candidates as a slate's rules see them, for the tests of slates and of exploration."""

import numpy as np
from hypothesis import strategies as st

from policy.slate import Traits

World = tuple[Traits, np.ndarray]


def traits(group: np.ndarray, failed: np.ndarray, allowed: np.ndarray, **known: np.ndarray) -> Traits:
    """Returns candidates, each of a source of its own, proven and of unknown similarity unless told otherwise."""
    count = len(group)
    usual = {
        "source": np.arange(count, dtype=np.int16),
        "proven": np.ones(count, bool),
        "similarity": np.full(count, np.nan, np.float32),
    }
    return Traits(group, failed, allowed, **(usual | known))


@st.composite
def scored_traits(draw: st.DrawFn) -> World:
    size = draw(st.integers(0, 20))
    column = st.lists(st.integers(0, 4), min_size=size, max_size=size)
    group = np.array(draw(column), dtype=np.int16)
    failed = np.array(draw(column), dtype=np.int16) == 0
    allowed = np.array(draw(column), dtype=np.int16) > 0
    scores = np.array(draw(st.lists(st.floats(-5, 5, width=32), min_size=size, max_size=size)), dtype=np.float32)
    return traits(group, failed, allowed), scores
