"""Real runs: outcomes are drawn from what a slate is worth, and every arm meets every query."""

import numpy as np
import pytest

from bench.learning import baselines, runs, scores, tau, tau_folds
from bench.learning.learner import remembered
from bench.learning.worth import PLACES


def test_a_logged_outcome_is_drawn_from_the_slates_mean_utility(airline: tau.Domain, fold: tau_folds.Fold):
    question = max(fold.train[tau_folds.Mode.WARM], key=lambda asked: asked.utility.sum())
    best = tuple(np.argsort(-question.utility)[:PLACES].tolist())
    outcome = runs._outcome([question], np.random.default_rng(0))  # noqa: SLF001
    mean = np.mean([outcome(0, best) for _ in range(4_000)])
    assert mean == pytest.approx(0.15 + 0.7 * question.utility[list(best)].mean(), abs=0.03)


def test_every_baseline_is_tested_on_every_query_of_both_modes(airline: tau.Domain, fold: tau_folds.Fold):
    service = runs.service(airline, fold, 40)
    service.advance(40)
    memory = remembered(airline.effects, service.log)
    found = runs.tested(airline, fold, memory, {scores.DEFAULT: baselines.by(None), **baselines.FIXED})
    asked = {mode: sum(question.ideal > 0 for question in questions) for mode, questions in fold.test.items()}
    assert {mode: sum(each is mode for each, _, _ in found) for mode in tau_folds.Mode} == asked
    named = scores.FIXED | {scores.DEFAULT, scores.ORACLE}
    assert all(set(ndcg) == named for _, _, ndcg in found)
    assert all(ndcg[scores.ORACLE] >= ndcg[scores.DEFAULT] - 1e-9 for _, _, ndcg in found)
