"""The fleet's benchmark: users of their own intents, forgers, and an attacker who looks for members."""

import numpy as np
import pytest

from bench.learning import fleet
from bench.learning.banking import Corpus
from policy.inputs import factory


@pytest.fixture(scope="module")
def one(corpus: Corpus) -> fleet.User:
    return fleet.user(corpus, 0)


def test_a_user_asks_only_what_their_own_bank_is_about(one: fleet.User):
    world = one.stage.world
    assert world.stream.intents.max() < fleet.INTENTS
    assert len(world.test.texts) == fleet.FIRST
    assert len(one.examples) == fleet.DECISIONS
    assert world.test_works().any(axis=1).mean() > 0.5


def test_a_forger_says_the_opposite_and_changes_nothing_else(one: fleet.User):
    assert (one.forged.reward == 1 - one.examples.reward).all()
    assert (one.forged.inputs == one.examples.inputs).all()


def test_an_untrained_head_earns_what_the_default_does(one: fleet.User):
    assert fleet.earned(one.stage, fleet.Policy("factory", factory(1, 0), 1.0)) == fleet.earned(one.stage, None)


def test_members_whose_losses_are_those_of_others_are_recognised_by_chance():
    losses = np.random.default_rng(0).normal(size=(2, 2_000))
    assert abs(fleet.recognised(losses[0], losses[1]).mean() - 0.5) < 0.03


def test_members_with_lower_losses_are_recognised():
    losses = np.random.default_rng(0).normal(size=(2, 200))
    assert fleet.recognised(losses[0] - 10, losses[1]).mean() > 0.98


def test_too_few_users_make_no_fleet(one: fleet.User):
    with pytest.raises(ValueError, match="too few"):
        fleet.fleet([one.examples] * 4, fleet.PLANS["fleet"])
