"""Deciding: who decides and how often, exact chances of what is served, and scores that can be taken apart."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policy.decide import (
    CANDIDATE,
    DEFAULT,
    SERVING,
    Budget,
    Decision,
    Policy,
    Trial,
    decide,
    score,
    shares,
    trial_share,
)
from policy.explore import NULL_SHARE
from policy.features import Features, column
from policy.inputs import CASE, Inputs
from policy.slate import DEPTH, Traits, choose, contenders, parted, ranking, traits_of, waiting
from tests.policies import head
from tests.policy.builders import pool, unhurried

K = 4
WORST_FIRST = Policy("q-1", head(vote=-9.0, reward=-3.0), 1.0)
NEAREST_FIRST = Policy("q-2", head(similarity=3.0), 1.0)
ARMS = {
    "default": {DEFAULT: None},
    "on trial": {DEFAULT: None, CANDIDATE: WORST_FIRST},
    "serving": {DEFAULT: None, SERVING: NEAREST_FIRST},
    "both": {DEFAULT: None, SERVING: NEAREST_FIRST, CANDIDATE: WORST_FIRST},
}
by_arms = pytest.mark.parametrize("arms", ARMS.values(), ids=list(ARMS))


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def world(seed: int, size: int | None = None) -> tuple[Features, Traits]:
    """Candidates of one query, some of which say the same, failed, or come from one source."""
    seen = pool(rng(seed), size)
    n = len(seen)
    group, source = rng(seed).integers(0, n, n), rng(seed + 1).integers(0, 3, n)
    return seen, traits_of(seen, group.astype(np.int16), source.astype(np.int16), None)


def by_order(seen: Features) -> np.ndarray:
    """Returns the scores of the policy without a network: the place by the order that serves."""
    return column(seen, "order")


def drawn(seen: Features, traits: Traits, arms: dict[str, Policy | None], budget: Budget, seed: int = 7) -> Decision:
    return decide(seen, traits, K, Trial(arms, budget, seed))


# Cold start


@given(st.integers(0, 10**6))
@unhurried
def test_without_a_learned_arm_the_slate_is_that_of_the_order_that_serves_exactly(seed: int):
    seen, traits = world(seed)
    decision = drawn(seen, traits, ARMS["default"], Budget(0, 0, 0), seed)
    assert decision.slate == choose(traits, ranking(traits, by_order(seen)), K)
    assert (decision.arm, decision.lottery.chances) == (DEFAULT, {decision.slate: 1})
    assert decision.scores.total.tolist() == Inputs(seen).prior.tolist()
    assert decision.scores.q is None


@given(st.integers(0, 10**6))
@unhurried
def test_a_policy_without_evidence_orders_like_the_default(seed: int):
    seen, traits = world(seed)
    decision = drawn(seen, traits, ARMS["both"] | {SERVING: replace(WORST_FIRST, blend=0.0)}, Budget(0, 0, 0), seed)
    assert decision.arm == SERVING
    assert decision.slates[SERVING] == decision.slates[DEFAULT] == decision.slate


def test_nothing_is_decided_about_nothing():
    for arms in ARMS.values():
        decision = drawn(*world(1, 0), arms, Budget())
        assert (decision.slate, decision.lottery.chances) == ((), {(): pytest.approx(1)})


# Shares


def test_no_decision_is_spent_on_an_experiment_unless_a_profile_asks_for_it():
    seen, traits = world(1)
    for arms in (ARMS["default"], ARMS["on trial"]):
        decision = drawn(seen, traits, arms, Budget())
        assert decision.lottery.chances == {decision.slates[DEFAULT]: pytest.approx(1)}
    assert shares(ARMS["both"], Budget()) == {DEFAULT: 0.05, SERVING: 0.95, CANDIDATE: 0}


@by_arms
@given(canary=st.floats(0, 0.9), kept=st.floats(0, 1), explore=st.floats(0, 1))
def test_the_shares_are_chances_whatever_the_budget(
    arms: dict[str, Policy | None], canary: float, kept: float, explore: float
):
    found = shares(arms, Budget(explore, canary, kept))
    assert set(found) == set(arms)
    assert sum(found.values()) == pytest.approx(1)
    assert min(found.values()) >= 0
    assert found.get(CANDIDATE, canary) == canary


def test_a_trial_takes_its_share_and_the_default_keeps_one_to_be_compared_with():
    budget = Budget(0.05, 0.25, 0.05)
    assert shares(ARMS["default"], budget) == {DEFAULT: 1}
    assert shares(ARMS["on trial"], budget) == {DEFAULT: 0.75, CANDIDATE: 0.25}
    assert shares(ARMS["serving"], budget) == {DEFAULT: 0.05, SERVING: 0.95}
    assert shares(ARMS["both"], budget) == {DEFAULT: 0.125, SERVING: 0.625, CANDIDATE: 0.25}
    assert shares(ARMS["both"], Budget(0.05, 0, 0)) == {DEFAULT: 0, SERVING: 1, CANDIDATE: 0}


def differing(share: float) -> dict[str, Policy | None]:
    """Arms of a trial whose candidate would serve another slate on so many decisions."""
    return {DEFAULT: None, SERVING: NEAREST_FIRST, CANDIDATE: replace(WORST_FIRST, differs=share)}


def test_a_candidate_that_mostly_agrees_gets_half_of_what_it_differs_on():
    budget = Budget(0.05, 0.25, 0.05)
    assert shares(differing(0.1), budget) == {DEFAULT: 0.05, SERVING: 0.45, CANDIDATE: 0.5}
    assert shares(differing(1.0), budget) == {DEFAULT: 0.125, SERVING: 0.625, CANDIDATE: 0.25}


@given(differs=st.floats(0.01, 1), canary=st.floats(0, 0.5))
def test_no_more_decisions_than_the_canary_get_another_slate_by_a_trial(differs: float, canary: float):
    share = trial_share(canary, differs)
    assert share * differs <= canary + 1e-9
    assert canary <= share <= 0.5


@by_arms
def test_over_many_seeds_each_arm_decides_as_often_as_its_share_says(arms: dict[str, Policy | None]):
    seen, traits = world(3, 12)
    budget, n = Budget(0.2, 0.25, 0.05), 800
    count = Counter(drawn(seen, traits, arms, budget, seed).arm for seed in range(n))
    for arm, share in shares(arms, budget).items():
        assert count[arm] / n == pytest.approx(share, abs=4 * np.sqrt(0.25 / n))


# Chances


@by_arms
def test_the_chance_of_each_slate_is_how_often_it_is_drawn(arms: dict[str, Policy | None]):
    seen, traits = world(5, 14)
    budget, n = Budget(0.5, 0.25, 0.1), 1_200
    decisions = [drawn(seen, traits, arms, budget, seed) for seed in range(n)]
    chances = decisions[0].lottery.chances
    assert all(decision.lottery.chances == chances for decision in decisions)
    assert sum(chances.values()) == pytest.approx(1)
    count = Counter(decision.slate for decision in decisions)
    assert set(count) <= set(chances)
    for slate, chance in chances.items():
        assert count[slate] / n == pytest.approx(chance, abs=4 * np.sqrt(chance / n))


def test_a_slate_that_two_arms_give_has_the_chances_of_both():
    seen, traits = world(6, 12)
    twin = replace(WORST_FIRST, blend=0.0)  # who thinks as the default does
    decision = drawn(seen, traits, {DEFAULT: None, CANDIDATE: twin}, Budget(0, 0.25, 0))
    assert decision.lottery.chances == {decision.slates[DEFAULT]: 1}
    other = drawn(seen, traits, {DEFAULT: None, CANDIDATE: WORST_FIRST}, Budget(0, 0.25, 0))
    mine, theirs = other.slates[DEFAULT], other.slates[CANDIDATE]
    assert mine != theirs
    assert dict(other.lottery.chances) == {mine: 0.75, theirs: 0.25}


@given(st.integers(0, 10**6), st.floats(0.01, 1))
@unhurried
def test_the_chances_of_each_place_and_of_nothing_sum_to_one(seed: int, explore: float):
    seen, traits = world(seed)
    decision = drawn(seen, traits, ARMS["both"], Budget(explore, 0.25, 0.05), seed)
    longest = max(map(len, decision.lottery.chances))
    for place in range(longest):
        filled = sum(decision.lottery.place_chance(place, index) for index in range(len(seen)))
        empty = sum(chance for slate, chance in decision.lottery.chances.items() if len(slate) <= place)
        assert filled + empty == pytest.approx(1)
    assert decision.lottery.chance(decision.slate) > 0


@given(st.integers(0, 10**6))
@unhurried
def test_exploration_changes_one_place_at_most_and_looks_no_deeper_than_it_may(seed: int):
    seen, traits = world(seed)
    decision = drawn(seen, traits, ARMS["default"], Budget(0.5, 0, 0), seed)
    plain = decision.slates[DEFAULT]
    ordered = ranking(traits, by_order(seen))
    rivals = contenders(traits, ordered, plain) if plain else []
    young = waiting(traits, ordered, plain) if plain else []
    near = {*ordered[:DEPTH], *parted(traits, ordered)[0][:DEPTH]}  # of all, or of the proven ones alone
    for slate, chance in decision.lottery.chances.items():
        assert slate in {plain, ()} or (slate[:-1] == plain[:-1] and slate[-1] in near | {*young})
        assert slate != () or not plain or chance == pytest.approx(0.5 * NULL_SHARE)
    assert len(decision.lottery.chances) <= len(rivals) + len(young) + 1


# Draws


@by_arms
def test_the_same_seed_makes_the_same_decision(arms: dict[str, Policy | None]):
    seen, traits = world(8, 20)
    for seed in range(50):
        one, other = [drawn(seen, traits, arms, Budget(0.5, 0.25, 0.1), seed) for _ in range(2)]
        assert (one.slate, one.arm, one.lottery.chances) == (other.slate, other.arm, other.lottery.chances)


@by_arms
def test_without_a_budget_nothing_is_drawn(arms: dict[str, Policy | None]):
    seen, traits = world(9, 20)
    decisions = [drawn(seen, traits, arms, Budget(0, 0, 0), seed) for seed in range(50)]
    best = SERVING if SERVING in arms else DEFAULT
    assert {(decision.arm, decision.slate) for decision in decisions} == {(best, decisions[0].slates[best])}
    assert decisions[0].lottery.chances == {decisions[0].slate: 1}


# Scores


@given(st.integers(0, 10**6), st.floats(0, 1))
@unhurried
def test_a_total_is_the_prior_and_the_blended_residual(seed: int, blend: float):
    seen, _ = world(seed)
    found = score(replace(NEAREST_FIRST, blend=blend), Inputs(seen))
    assert found.prior.tolist() == Inputs(seen).prior.tolist()
    assert found.total == pytest.approx(found.prior + blend * found.residual, abs=1e-5)
    assert found.residual == pytest.approx(3 * Inputs(seen).case[:, CASE.index("similarity")], abs=1e-5)


def test_an_expected_reward_rises_with_the_score_of_a_policy_that_is_fully_blended_in():
    seen, _ = world(11, 30)
    found = score(NEAREST_FIRST, Inputs(seen))
    assert np.array_equal(np.argsort(found.q, kind="stable"), np.argsort(found.total, kind="stable"))
    assert (found.q > 0).all()
    assert (found.q < 1).all()


def test_the_spread_is_how_far_the_members_are_apart():
    seen, _ = world(12, 10)
    plain = NEAREST_FIRST.head
    two = {name: np.concatenate([array, array * 3]) for name, array in plain.arrays().items() if len(array) == 1}
    members = Policy("q-3", replace(plain, **two), 1.0)
    single = score(NEAREST_FIRST, Inputs(seen))
    found = score(members, Inputs(seen))
    assert single.spread.tolist() == [0] * 10
    assert found.residual == pytest.approx(2 * single.residual, abs=1e-5)
    assert found.spread == pytest.approx(abs(single.residual), abs=1e-5)
