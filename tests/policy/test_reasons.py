"""Every candidate is told why it stands or does not, and what is told is so."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from policy.reasons import reasons
from policy.slate import Traits, choose, ranking
from tests.policy.traits import World, scored_traits


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Candidates of several sources, proven and not, near and far."""
    traits, scores = draw(scored_traits())
    size = len(scores)
    column = st.lists(st.integers(0, 2), min_size=size, max_size=size)
    source, proven, near = (np.array(draw(column), dtype=np.int16) for _ in range(3))
    similarity = (near / 3).astype(np.float32)
    return Traits(
        traits.group, traits.failed, traits.allowed, source, (proven > 0) & ~traits.failed, similarity
    ), scores


@given(worlds(), st.integers(1, 6))
def test_what_is_told_of_a_candidate_is_so(world: World, k: int):
    traits, scores = world
    slate = choose(traits, ranking(traits, scores), k)
    ordered = ranking(traits, scores)
    told = reasons(traits, scores, slate, slate)
    assert [index for index, reason in enumerate(told) if reason == "chosen"] == sorted(slate)
    for index, reason in enumerate(told):
        below = [other for other in slate if ordered.index(other) > ordered.index(index)] if index in ordered else []
        holds = {
            "chosen": index in slate,
            "not_near_enough": not traits.allowed[index],
            "same_as_another": traits.group[index] in traits.group[list(slate)],
            "another_failure": traits.failed[index] and traits.failed[list(slate)].any(),
            "unproven": below and not traits.proven[index],
            "displaced": below and traits.proven[index] and traits.unproven(slate),
            "source": traits.source[index] in traits.source[list(slate)],
            "lower": not below,
            "left_empty": not slate,
        }
        assert holds[reason], reason


@given(scored_traits(), st.integers(1, 6))
def test_of_a_slate_left_empty_no_candidate_is_said_to_be_worse_than_another(world: World, k: int):
    traits, scores = world
    by_rule = choose(traits, ranking(traits, scores), k)
    assert set(reasons(traits, scores, (), by_rule)) <= {"left_empty", "not_near_enough"}


@given(scored_traits(), st.data())
def test_what_a_lot_tried_out_is_told_as_drawn(world: World, data: st.DataObject):
    traits, scores = world
    by_rule = choose(traits, ranking(traits, scores), 2)
    others = sorted(set(np.flatnonzero(traits.allowed)) - set(by_rule))
    if not by_rule or not others:
        return
    other = int(data.draw(st.sampled_from(others)))
    told = reasons(traits, scores, (*by_rule[:-1], other), by_rule)
    assert (told[other], told[by_rule[-1]]) == ("drawn", "lower")
