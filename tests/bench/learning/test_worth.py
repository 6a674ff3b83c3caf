"""What a case is worth: to change nothing is a plan, and the measure shares no code with the feature that it judges."""

import ast
from pathlib import Path

import numpy as np
import pytest

from bench.learning import tau, tau_folds, worth
from bench.learning.worth import agreement, ideal, ndcg


@pytest.mark.parametrize(
    ("plan", "other", "expected"),
    [
        ([0, 0], [0, 0], 1.0),
        ([0, 0], [1, 0], 0.0),
        ([1, 0], [0, 1], 0.0),
        ([1, 1], [1, 0], 2 / 3),
        ([9, 0], [10, 0], 18 / 19),
    ],
)
def test_two_plans_agree_by_their_tools_and_two_that_change_nothing_wholly(
    plan: list[float], other: list[float], expected: float
):
    assert agreement(np.array(plan, float), np.array([other], float)) == pytest.approx([expected])


def test_the_measure_imports_nothing_of_what_ranks():
    tree = ast.parse(Path(worth.__file__).read_text(encoding="utf-8"))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name for name in imported if name and name.startswith(("policy", "retrieval"))} == {"policy.logged"}


def test_the_best_order_reaches_one_and_another_less():
    utility = np.array([0.2, 1.0, 0.5, 0.0, 0.1])
    best = ideal(utility)
    assert ndcg(utility, np.array([1, 2, 0, 4]), best) == pytest.approx(1.0)
    assert ndcg(utility, np.array([3, 2, 0, 4]), best) < 1


def test_queries_whose_right_answer_changes_nothing_count(airline: tau.Domain, fold: tau_folds.Fold):
    asked = [question for questions in fold.test.values() for question in questions]
    idle = [question for question in asked if not airline.gold[question.run].any()]
    assert any(question.worth.ideal > 0 for question in idle)
