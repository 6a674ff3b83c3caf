"""Training and scoring are timed."""

from bench.learning.speed import run as speed


def test_batched_training_is_timed_against_one_by_one():
    rows = {row.name: row for row in speed(profiles=4)}
    assert rows["speed training: batched"].value > 0
    assert rows["speed memory: peak resident of the benchmark"].value > 10
    assert rows["speed scoring: head alone"].value > 0
