"""What may stand in a log, and with what propensity: what makes no sense is a named error."""

from collections.abc import Callable

import numpy as np
import pytest

from bench.gate.canary import DEFAULT_SLATE, earlier_mean, explored, mixture_propensity, slate_probability
from policy.evaluate import weights
from policy.logged import EvaluationError, Target
from tests.policy.decision_logs import log


def test_the_propensity_of_a_slate_that_both_policies_give_is_the_sum_over_both():
    both, ours, theirs = np.array([1.0, 1.0, 0.0]), np.array([1.0, 1.0, 0.0]), np.array([1.0, 0.0, 1.0])
    assert mixture_propensity([0.75, 0.25], [theirs, ours]).tolist() == [1.0, 0.25, 0.75]
    assert mixture_propensity([0.75, 0.25], [both, ours]).tolist() == [1.0, 1.0, 0.0]


def test_an_explored_slate_that_is_the_other_policys_own_counts_for_both():
    rng, n = np.random.default_rng(1), 20_000
    theirs, ours = np.tile(DEFAULT_SLATE, (n, 1)), np.tile([0, 1, 2, 4], (n, 1))
    arm = rng.random(n) < 0.25
    slate = explored(np.where(arm[:, None], ours, theirs), 0.2, rng)
    propensity = mixture_propensity([0.75, 0.25], [slate_probability(slate, each, 0.2) for each in (theirs, ours)])
    is_ours = (slate == ours).all(axis=1)
    assert is_ours.mean() == pytest.approx(0.25 * 0.8 + 0.75 * 0.05, abs=0.01)
    assert np.unique(propensity[is_ours]) == pytest.approx([0.25 * 0.8 + 0.75 * 0.05])
    assert weights(log(np.zeros(n), propensity), Target(is_ours.astype(float))).mean() == pytest.approx(1, abs=0.05)


def test_the_mean_of_earlier_rewards_is_shrunk_and_unknown_groups_get_the_overall_mean():
    found = earlier_mean(np.array([1.0, 1.0, 0.0, 0.0, np.nan]), np.array([7, 7, 8, 8, 9]), np.array([7, 9, 8, 1]))
    assert found.tolist() == [0.75, 0.5, 0.25, 0.5]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_propensity_or_probability_that_is_no_number_is_a_named_error(bad: float):
    with pytest.raises(EvaluationError, match="only rewards"):
        log([0.0, 1.0], np.array([1.0, bad]))
    with pytest.raises(EvaluationError, match="only rewards"):
        Target(np.array([1.0, bad]))
    with pytest.raises(EvaluationError, match="only rewards"):
        log([0.0, 1.0], covariates=np.array([[1.0], [bad]]))


def test_infinite_rewards_and_promises_are_named_errors():
    with pytest.raises(EvaluationError, match="infinite"):
        log([0.0, np.inf])
    with pytest.raises(EvaluationError, match="infinite"):
        Target(np.ones(2), predicted=np.array([0.0, np.inf]))


@pytest.mark.parametrize(
    "make",
    [
        lambda: log([0.0, 1.5]),
        lambda: log([0.0, -0.1]),
        lambda: log([0.0, 1.0], np.array([0.0, 1.0])),
        lambda: log([0.0, 1.0], np.array([1.1, 1.0])),
        lambda: Target(np.array([1.2, 0.0])),
    ],
)
def test_rewards_and_probabilities_out_of_range_are_named_errors(make: Callable[[], object]):
    with pytest.raises(EvaluationError, match="lie"):
        make()


def test_columns_of_different_lengths_are_a_named_error():
    with pytest.raises(EvaluationError, match="one row per decision"):
        log([0.0, 1.0], np.ones(3))
    with pytest.raises(EvaluationError, match="one row per decision"):
        weights(log([0.0, 1.0]), Target(np.ones(3)))
