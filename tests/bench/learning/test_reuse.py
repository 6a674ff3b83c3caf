"""Simulated reuse: what works, and which decisions are reuse."""

from bench.learning.learner import Service
from bench.learning.reuse import Stage, as_log


def test_a_stored_answer_works_when_it_is_the_querys_intent(reuse: Stage):
    works = reuse.world.works()
    for now in range(20):
        for place in range(3):
            assert reuse.outcome(now, (place,)) == (works[now, place] != reuse.world.flipped[now])
        assert reuse.outcome(now, ()) == reuse.world.flipped[now]


def test_decisions_that_served_nothing_are_no_reuse(stream: Service):
    log = as_log(stream.log)
    assert len(log.row) == sum(bool(decision.slate) for decision in stream.log)
    assert all(stream.log[row].slate == (place,) for row, place in zip(log.row, log.place, strict=True))
