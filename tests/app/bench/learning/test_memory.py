"""What was reused well counts as proven."""

import numpy as np

from app.bench.learning.memory import Memory
from app.bench.learning.reuse import Stage


def test_a_case_that_was_reused_well_is_proven(reuse: Stage):
    scene, memory = reuse.stream[0], Memory(reuse.effects)
    assert not scene.field(memory.features(scene)).proven.any()
    memory.learn(scene, (3,), 1.0)
    assert np.flatnonzero(scene.field(memory.features(scene)).proven).tolist() == [3]
