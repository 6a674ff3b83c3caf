"""Candidates as a slate's rules see them, for the tests of slates and of exploration."""

import numpy as np
from hypothesis import strategies as st

from policy.slate import Field

World = tuple[Field, np.ndarray]


@st.composite
def fields(draw: st.DrawFn) -> World:
    size = draw(st.integers(0, 20))
    column = st.lists(st.integers(0, 4), min_size=size, max_size=size)
    group = np.array(draw(column), dtype=np.int16)
    failed = np.array(draw(column), dtype=np.int16) == 0
    allowed = np.array(draw(column), dtype=np.int16) > 0
    scores = np.array(draw(st.lists(st.floats(-5, 5, width=32), min_size=size, max_size=size)), dtype=np.float32)
    return Field(group, failed, allowed), scores
