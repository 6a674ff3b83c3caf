"""What exploration promises: one place at most, exact chances, and the same draw for the same seed."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policy.explore import Lottery, certain, compound, explored
from policy.slate import DEPTH, Traits, choose, contenders, ranking
from tests.policy.traits import World, scored_traits
from tests.policy.traits import traits as made


@given(scored_traits(), st.integers(1, 6), st.floats(0, 1))
def test_the_chances_of_exploration_sum_to_one(world: World, k: int, budget: float):
    traits, scores = world
    ordered = ranking(traits, scores)
    lottery = explored(traits, scores, ordered, choose(traits, ordered, k), budget)
    assert sum(lottery.chances.values()) == pytest.approx(1)
    assert all(chance > 0 for chance in lottery.chances.values())


@given(scored_traits(), st.integers(1, 6), st.floats(0.01, 1))
def test_exploration_changes_the_last_place_or_empties_the_slate_and_reaches_the_top_eight_only(
    world: World, k: int, budget: float
):
    traits, scores = world
    ordered = ranking(traits, scores)
    slate = choose(traits, ordered, k)
    for drawn in explored(traits, scores, ordered, slate, budget).chances:
        assert drawn in {(), slate} or (drawn[:-1] == slate[:-1] and drawn[-1] in ordered[:DEPTH])


@given(scored_traits(), st.integers(1, 6), st.floats(0, 1))
def test_the_place_chances_and_the_chance_of_a_shorter_slate_sum_to_one(world: World, k: int, budget: float):
    traits, scores = world
    ordered = ranking(traits, scores)
    lottery = explored(traits, scores, ordered, choose(traits, ordered, k), budget)
    for place in range(k):
        filled = sum(lottery.place_chance(place, index) for index in range(len(scores)))
        empty = sum(chance for slate, chance in lottery.chances.items() if len(slate) <= place)
        assert filled + empty == pytest.approx(1)


def plain(count: int) -> Traits:
    everyone = np.arange(count, dtype=np.int16)
    return made(everyone, np.zeros(count, bool), np.ones(count, bool))


def test_without_a_budget_nothing_is_explored():
    scores = np.arange(5, 0, -1, dtype=np.float32)
    assert explored(plain(5), scores, list(range(5)), (0, 1), 0).chances == {(0, 1): 1.0}


def test_an_empty_slate_is_left_empty():
    assert explored(plain(0), np.zeros(0, np.float32), [], (), 0.5).chances == {(): 1.0}


def test_the_budget_is_what_is_taken_from_the_slate_at_the_most():
    scores = np.arange(5, 0, -1, dtype=np.float32)
    lottery = explored(plain(5), scores, list(range(5)), (0, 1), 0.05)
    assert 0.95 <= lottery.chance((0, 1)) < 1
    assert lottery.chance(()) == pytest.approx(0.005)


def test_a_slate_that_two_policies_give_has_both_their_chances():
    mixed = compound([0.75, 0.25], [Lottery({(0,): 0.9, (1,): 0.1}), certain((0,))])
    assert mixed.chance((0,)) == pytest.approx(0.75 * 0.9 + 0.25)
    assert mixed.chance((1,)) == pytest.approx(0.075)
    assert mixed.chance((2,)) == 0


def test_draws_come_as_often_as_their_chances_say():
    lottery = Lottery({(0,): 0.7, (1,): 0.25, (): 0.05})
    rng = np.random.default_rng(1)
    drawn = Counter(lottery.draw(rng) for _ in range(20_000))
    for slate, chance in lottery.chances.items():
        assert drawn[slate] / 20_000 == pytest.approx(chance, abs=0.02)


def test_the_same_seed_draws_the_same_slate():
    lottery = Lottery({(index,): 0.1 for index in range(10)})
    assert lottery.draw(np.random.default_rng(7)) == lottery.draw(np.random.default_rng(7))


def test_a_rival_of_the_last_place_may_be_a_failure_only_if_the_places_before_hold_none():
    traits = made(np.arange(3, dtype=np.int16), np.array([True, False, True]), np.ones(3, bool))
    assert contenders(traits, [0, 1, 2], (0, 1)) == [1]
    assert contenders(traits, [1, 0, 2], (1, 0)) == [0, 2]
