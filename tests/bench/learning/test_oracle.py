"""What outcomes lack on agent runs: the hint is as strong as it says, and is learned from where it is strong."""

import numpy as np
import pytest

from bench.learning import oracle, runs, tau, tau_folds
from bench.learning.oracle import Hint, Told
from policy.inputs import CASE


@pytest.mark.parametrize("correlation", [0.2, 0.6])
def test_a_hint_goes_with_what_a_candidate_is_worth_by_as_much_as_it_says(fold: tau_folds.Fold, correlation: float):
    asked = runs.asked_in_training(fold)
    hint = Hint.of(asked, correlation)
    pairs = []
    for question in asked:
        inputs = np.zeros((len(question.utility), 2), np.float32)
        seen = hint.beside(inputs, question)
        assert (seen[:, :2] == inputs).all()
        assert (hint.beside(inputs, question) == seen).all()
        pairs.append(np.stack([question.utility - question.utility.mean(), seen[:, 2] - seen[:, 2].mean()]))
    assert np.corrcoef(np.concatenate(pairs, axis=1))[0, 1] == pytest.approx(correlation, abs=0.05)


def test_without_a_hint_the_policy_sees_its_own_inputs_alone(fold: tau_folds.Fold):
    question = runs.asked_in_training(fold)[0]
    inputs = np.ones((len(question.utility), len(CASE)), np.float32)
    assert Hint.of([question], 0.0).beside(inputs, question) is inputs


def test_a_strong_hint_is_learned_from_labels_and_moves_the_order(airline: tau.Domain, fold: tau_folds.Fold):
    lesson = oracle.lesson(airline, fold, Told.LABELS)
    hint = Hint.of(runs.asked_in_training(fold), 0.8)
    (policy,) = oracle.learned([lesson], [hint], Told.LABELS)
    met = oracle.tested(airline, fold, lesson.memory)
    before = [oracle.reached(asked, seen.prior) for _, asked, seen in met]
    after = [oracle.reached(asked, oracle.scored(policy, hint, asked, seen)) for _, asked, seen in met]
    assert np.mean(after) > np.mean(before) + 0.05


@pytest.mark.parametrize("told", [Told.OUTCOMES, Told.FOLLOWED])
def test_a_log_says_who_earned_its_outcome_as_far_as_it_is_told(airline: tau.Domain, fold: tau_folds.Fold, told: Told):
    credit = oracle.lesson(airline, fold, told, decisions=40).examples.credit
    whole = credit[credit.sum(axis=1) > 0]
    assert whole.sum(axis=1) == pytest.approx(1)
    assert whole.max(axis=1) == pytest.approx(1.0 if told is Told.FOLLOWED else 0.25)
