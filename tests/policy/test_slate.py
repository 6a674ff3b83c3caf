"""The rules of a slate: no repeats, at most one failure, and only what is allowed."""

from hypothesis import given
from hypothesis import strategies as st

from policy.slate import choose, fits, order
from tests.policy.fields import World, fields


@given(fields(), st.integers(0, 6))
def test_a_slate_has_no_repeats_one_failure_at_most_and_nothing_that_is_not_allowed(world: World, k: int):
    field, scores = world
    slate = choose(field, order(field, scores), k)
    assert len(slate) <= k
    assert len(set(field.group[list(slate)])) == len(slate)
    assert field.failed[list(slate)].sum() <= 1
    assert field.allowed[list(slate)].all()


@given(fields(), st.integers(1, 6))
def test_a_slate_is_short_only_when_nobody_else_fits(world: World, k: int):
    field, scores = world
    slate = choose(field, order(field, scores), k)
    if len(slate) < k:
        assert not any(fits(field, slate, index) for index in order(field, scores))
