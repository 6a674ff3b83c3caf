"""The rules of a slate: no repeats, at most one failure, and only what is allowed."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from policy.slate import choose, may_join, ranking
from tests.policy.traits import World, scored_traits
from tests.policy.traits import traits as made


@given(scored_traits(), st.integers(0, 6))
def test_a_slate_has_no_repeats_one_failure_at_most_and_nothing_that_is_not_allowed(world: World, k: int):
    traits, scores = world
    slate = choose(traits, ranking(traits, scores), k)
    assert len(slate) <= k
    assert len(set(traits.group[list(slate)])) == len(slate)
    assert traits.failed[list(slate)].sum() <= 1
    assert traits.allowed[list(slate)].all()


@given(scored_traits(), st.integers(1, 6))
def test_a_slate_is_short_only_when_nobody_else_fits(world: World, k: int):
    traits, scores = world
    slate = choose(traits, ranking(traits, scores), k)
    if len(slate) < k:
        assert not any(may_join(traits, slate, index) for index in ranking(traits, scores))


def beside_proven(*similarities: float) -> tuple[int, ...]:
    """The slate of four from an unproven case above four proven ones, of these similarities to the query."""
    nothing, near = np.zeros(5, bool), np.array(similarities, np.float32)
    return choose(
        made(np.arange(5, dtype=np.int16), nothing, ~nothing, proven=np.arange(5) > 0, similarity=near), range(5), 4
    )


def test_an_unproven_repeat_of_the_task_takes_the_last_place_of_proven_cases():
    assert beside_proven(1.0, 0.8, 0.8, 0.6, 0.4) == (0, 1, 2, 3)


def test_an_unproven_run_of_a_proven_cases_plan_does_not_take_its_place_however_near():
    nothing, alike = np.zeros(2, bool), np.zeros(2, np.int16)
    near = np.array([0.9, 0.2], np.float32)
    for plans, slate in ((alike, (1,)), (np.arange(2, dtype=np.int16), (0,))):
        twins = made(plans, nothing, ~nothing, proven=np.array([False, True]), similarity=near)
        assert choose(twins, range(2), 1) == slate


def test_a_text_padded_with_the_words_of_many_queries_waits_while_a_proven_case_is_as_near():
    assert beside_proven(0.7, 0.65, 0.4, 0.3, 0.2) == (1, 2, 3, 4)
    assert beside_proven(0.7, np.nan, 0.4, 0.3, 0.2) == (1, 2, 3, 4)
