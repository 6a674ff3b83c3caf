from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policy.agreement import LEAST_RARITY, MOST_REPEATS, SAME, agreement, rarity
from tests.policy.banks import moves

plans = st.lists(st.lists(st.integers(-5, 5), max_size=12), max_size=8)


def of(*texts: str) -> np.ndarray:
    return agreement([moves(text) for text in texts])


@settings(deadline=None, max_examples=50)
@given(plans)
def test_agreement_is_symmetric_within_0_and_1_and_1_with_itself(several: list[list[int]]):
    found = agreement([np.array(plan, dtype=np.int32) for plan in several])
    assert found.shape == (len(several), len(several))
    assert np.allclose(found, found.T)
    assert ((found >= 0) & (found <= 1 + 1e-6)).all()
    assert np.allclose(np.diag(found), 1)


@settings(deadline=None, max_examples=50)
@given(plans, st.randoms(use_true_random=False))
def test_the_order_of_moves_does_not_count(several: list[list[int]], random: Random):
    shuffled = [random.sample(plan, len(plan)) for plan in several]
    first, second = ([np.array(plan, np.int32) for plan in each] for each in (several, shuffled))
    assert np.allclose(agreement(first), agreement(second))


def test_plans_without_a_common_move_disagree():
    assert of("find refund", "look cancel")[0, 1] == 0


def test_a_rare_move_counts_more_than_one_that_every_plan_has():
    found = of("find refund", "find refund why=late", "find cancel", "find address")
    assert found[0, 1] > found[0, 2]
    assert found[0, 2] < 0.2


def test_a_plan_without_moves_agrees_with_itself_alone():
    assert of("", "", "find")[0].tolist() == [1, 0, 0]


def test_a_loop_of_a_hundred_calls_is_the_same_plan_as_one_of_twenty():
    assert of("open " + "next " * 100, "open " + "next " * 20)[0, 1] >= SAME
    assert of("open next", "open " + "next " * (MOST_REPEATS - 1))[0, 1] < SAME


def test_no_plan_has_no_agreement():
    assert agreement([]).shape == (0, 0)


def test_weights_of_a_bank_hold_for_other_plans_and_unknown_moves_weigh_most():
    bank = rarity([moves(plan) for plan in ("find refund", "find cancel", "find cancel")])
    find, cancel, other = bank.of(moves("find cancel never"))
    assert find == pytest.approx(LEAST_RARITY)
    assert find < cancel < other == pytest.approx(bank.unknown)
    assert agreement([moves("find a"), moves("find b")], bank)[0, 1] == pytest.approx(
        LEAST_RARITY / (LEAST_RARITY + bank.unknown)
    )
