"""The made-up service decides with exact chances, remembers earlier rewards only, and trains on its log."""

from dataclasses import replace

import numpy as np
import pytest

from bench.learning import runs, tau, tau_folds
from bench.learning.learner import PLAN, UNTRAINED, Prepared, Service, examples, permuted, remembered
from bench.learning.reuse import Stage
from bench.learning.worth import PLACES
from policy.decide import CANDIDATE, Budget, Trial, decide, score
from policy.inputs import factory
from policy.train import chosen_ridges


def test_the_chances_of_all_slates_of_a_decision_sum_to_one_and_the_logged_one_is_among_them(stream: Service):
    for decision in stream.log[::20]:
        arms = {"default": None, CANDIDATE: UNTRAINED}
        lottery = decide(decision.features, decision.field, 1, Trial(arms, Budget(), 0)).lottery
        assert sum(lottery.chances.values()) == pytest.approx(1)
        assert 0 < decision.chance <= 1


def test_logged_propensities_are_exact(reuse: Stage):
    """Drawn a thousand times, a first decision falls as often as its logged chance says."""
    seen: dict[tuple[int, ...], list[float]] = {}
    for seed in range(1_000):
        service = Service(reuse.stream, reuse.outcome, reuse.effects, 1, np.random.default_rng(seed))
        service.candidate = UNTRAINED
        service.advance(1)
        seen.setdefault(service.log[0].slate, []).append(service.log[0].chance)
    for chances in seen.values():
        assert len(set(chances)) == 1
        assert len(chances) / 1_000 == pytest.approx(chances[0], abs=4 * (chances[0] * (1 - chances[0]) / 1_000) ** 0.5)


def test_the_canary_serves_its_share_once_there_is_a_candidate(stream: Service):
    canary = np.array([decision.canary for decision in stream.log])
    assert not canary[:100].any()
    assert 0.1 < canary[100:].mean() < 0.4


def test_features_know_only_earlier_rewards(reuse: Stage, stream: Service):
    for now in (0, 50, 200):
        memory = remembered(reuse.effects, stream.log[:now])
        assert np.array_equal(memory.features(stream.log[now].scene), stream.log[now].features, equal_nan=True)


def test_all_queries_at_once_score_as_the_service_scores_each(reuse: Stage, stream: Service):
    memory = remembered(reuse.effects, stream.log)
    prepared = Prepared.of(memory, reuse.test[:20])
    for policy in (None, stream.candidate):
        expected = [score(policy, memory.features(scene)).total for scene in reuse.test[:20]]
        np.testing.assert_allclose(prepared.scores(policy), expected, atol=1e-5)


def test_permuting_keeps_the_rewards_and_nothing_else_of_them(reuse: Stage, stream: Service):
    shuffled = permuted(stream.log, reuse.effects, np.random.default_rng(0))
    assert sorted(d.reward for d in shuffled) == sorted(d.reward for d in stream.log)
    assert [d.slate for d in shuffled] == [d.slate for d in stream.log]
    assert [d.reward for d in shuffled] != [d.reward for d in stream.log]


def test_a_slates_outcome_is_shared_by_its_places(airline: tau.Domain, fold: tau_folds.Fold):
    service = runs.service(airline, fold, 40)
    service.advance(40)
    rows = examples(service.log, PLACES)
    filled = np.array([len(decision.slate) for decision in service.log])
    np.testing.assert_allclose(rows.credit.sum(axis=1), filled > 0)
    np.testing.assert_allclose(rows.credit.max(axis=1), 1 / np.maximum(filled, 1) * (filled > 0))
    assert set(rows.reward) <= {0, 1}


def test_the_slates_hold_at_most_one_failure(airline: tau.Domain, fold: tau_folds.Fold):
    service = runs.service(airline, fold, 60)
    service.candidate = UNTRAINED
    service.advance(60)
    assert all(decision.field.failed[list(decision.slate)].sum() <= 1 for decision in service.log)


def test_a_ridge_is_one_of_the_plans_and_the_largest_where_nothing_can_be_held_out(reuse: Stage, stream: Service):
    noise = np.random.default_rng(0).random(len(stream.log)) < 0.5
    rows = replace(examples(stream.log, 1), reward=noise.astype(np.float32))
    plan = replace(PLAN, steps=40)
    none = rows.take(np.zeros(len(rows), dtype=bool))
    assert chosen_ridges([none], plan, [0], factory(1)) == [max(plan.ridges)]
    assert chosen_ridges([rows, none], plan, [0, 0], factory(1))[0] in plan.ridges
