"""What a slate earned is remembered of its cases, as the product does where nobody says which of them was used."""

from bench.learning.memory import Memory
from bench.learning.reuse import Stage
from policy.features import column


def test_what_was_merely_shown_is_counted_and_not_proven(reuse: Stage):
    scene, memory = reuse.stream[0], Memory(reuse.effects)
    memory.learn(scene, (3,), 1.0)
    seen = memory.features(scene)
    assert column(seen, "reuse_count")[3] == 1
    assert not scene.field(seen).proven.any()
