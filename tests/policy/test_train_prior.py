"""A prior that users share: what they have in common, and nobody's flood."""

from dataclasses import replace

import numpy as np

from policy.examples import Examples, pooled
from policy.network import Head
from policy.train import Plan, train
from tests.policy.builders import QUICK, logged, start, toy
from tests.policy.trained import PROBE, flipped, moved, rng

CROWD = [logged(rng(100 + user), 40) for user in range(19)]
PRIOR_PLAN = Plan(steps=120, ridge=30.0)


def train_prior(users: list[Examples], plan: Plan, seed: int, begin: Head, cap: float = 0.1) -> Head:
    """The shared prior, as the nightly training makes it of one part a user."""
    return train([pooled(users, cap)], plan, [seed], begin)[0] if users else begin


def prior_of(loud: Examples, cap: float = 0.1) -> Head:
    return train_prior([*CROWD, loud], PRIOR_PLAN, 1, start(), cap)


def test_the_shared_prior_learns_what_users_have_in_common():
    bank = toy(rng(22), 200)
    head = train_prior(CROWD, PRIOR_PLAN, 1, start())
    before, after, best = bank.value(bank.prior), bank.value(bank.learned(head)), bank.value(bank.worth)
    assert after - before > 0.7 * (best - before)


def test_a_single_user_cannot_move_the_prior_by_more_than_the_cap_allows():
    loud = logged(rng(23), 4_000)
    capped, uncapped = (moved(prior_of(loud, cap), prior_of(flipped(loud), cap), PROBE) for cap in (0.1, 1.0))
    everybody = [*CROWD, loud]
    upset = train_prior([flipped(user) for user in everybody], PRIOR_PLAN, 1, start())
    all_together = moved(train_prior(everybody, PRIOR_PLAN, 1, start()), upset, PROBE)
    assert capped < 3 * 0.1 * all_together
    assert capped < 0.3 * uncapped


def test_a_flood_from_one_user_does_not_make_the_prior_trust_the_few_rows_of_the_others_more():
    few, many = logged(rng(24), 40), logged(rng(24), 20_000)
    quiet, flood = (
        train_prior([*CROWD, replace(rows, reward=np.full(len(rows), 0.5, np.float32))], PRIOR_PLAN, 1, start())
        for rows in (few, many)
    )
    assert moved(flood, start(), PROBE) < 1.2 * moved(quiet, start(), PROBE)


def test_a_flood_from_one_user_does_not_set_the_units_in_which_the_others_are_seen():
    odd = logged(rng(25), 20_000)
    head = prior_of(replace(odd, inputs=odd.inputs * 0.001 + 10))
    assert np.abs(head.centre).max() < 0.1 * 10 + 0.5


def test_a_prior_of_nobody_is_what_it_began_with():
    for nobody in ([], [logged(rng(), 0)] * 12):
        head = train_prior(nobody, QUICK, 1, start(hidden=2))
        assert np.array_equal(PROBE.learned(head), PROBE.learned(start(hidden=2)))


def test_a_users_head_starts_from_the_prior_and_leaves_it_as_decisions_come():
    prior = train_prior(CROWD, PRIOR_PLAN, 1, start())
    other = flipped(logged(rng(26), 2_000))
    near, far = (train([other.take(np.arange(size))], Plan(), [1], prior)[0] for size in (10, 2_000))
    bank = toy(rng(27), 200)
    assert moved(near, prior, bank) < 0.2 * moved(far, prior, bank)
    assert bank.value(bank.learned(near)) > bank.value(bank.prior) > bank.value(bank.learned(far))
