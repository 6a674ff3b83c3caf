"""Logged decisions with exact propensities, and the policies that are evaluated on them."""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class EvaluationError(ValueError):
    """Raised when a policy cannot be evaluated on a log: arrays are empty, differ in length, or are out of range."""


@dataclass(frozen=True, slots=True, eq=False)
class Logged:
    """The columns of n logged decisions; each row is one decision.

    Attributes:
        reward: (n,), reward of the decision, 0 to 1; NaN is missing, never zero.
        logged_propensity: (n,), above 0 to 1, chance of the logged slate, summed over all policies that might have
            served it.
        group: (n,), number of the query; decisions that share a random draw belong to one group.
        segment: (n,), number of the decision's part in a partition of which no part must lose, such as kinds of task.
        covariates: (n, k), numbers known before the arm was drawn; k may be 0. A reward of the same group and draw is
            not known before: take it from earlier decisions.
    """

    reward: Floats
    logged_propensity: Floats
    group: Ints
    segment: Ints
    covariates: Floats

    def __post_init__(self) -> None:
        """Raises EvaluationError for a column of wrong length or a number out of range."""
        same_length(self.reward, self.logged_propensity, self.group, self.segment, self.covariates)
        _finite(self.logged_propensity, self.covariates)
        if np.isinf(self.reward).any():
            raise EvaluationError("a reward is infinite")
        if ((self.reward < 0) | (self.reward > 1)).any():
            raise EvaluationError("rewards lie within 0 and 1")
        if ((self.logged_propensity <= 0) | (self.logged_propensity > 1)).any():
            raise EvaluationError("the propensity of what was logged lies above 0 and at most at 1")

    def take(self, rows: NDArray[np.bool_] | NDArray[np.int64]) -> "Logged":
        """Returns a log of these rows only."""
        return Logged(**{field.name: getattr(self, field.name)[rows] for field in fields(self)})


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """A policy to evaluate, described by its numbers for each of a log's n decisions.

    Attributes:
        target_probability: (n,), 0 to 1, chance of the logged slate under this policy; 0 or 1 if it does not explore.
        predicted: (n,), 0 to 1, reward that this policy predicts for the logged slate; NaN without a prediction.
    """

    target_probability: Floats
    predicted: Floats | None = None

    def __post_init__(self) -> None:
        """Raises EvaluationError for a column of wrong length or a number out of range."""
        same_length(self.target_probability, self.predicted)
        _finite(self.target_probability)
        if ((self.target_probability < 0) | (self.target_probability > 1)).any():
            raise EvaluationError("a policy's probability of a slate lies within 0 and 1")
        if self.predicted is not None and np.isinf(self.predicted).any():
            raise EvaluationError("a promised reward is infinite")

    def take(self, rows: NDArray[np.bool_]) -> "Target":
        """Returns the policy's numbers for these rows only."""
        return Target(self.target_probability[rows], None if self.predicted is None else self.predicted[rows])


def same_length(first: NDArray[np.float64], *others: NDArray[np.float64] | NDArray[np.int64] | None) -> None:
    """Raises EvaluationError unless every column has as many rows as the first column."""
    if first.ndim != 1 or any(other is not None and len(other) != len(first) for other in others):
        raise EvaluationError("every column has one row per decision")


def _finite(*columns: Floats) -> None:
    """Raises EvaluationError unless every number is finite."""
    if not all(np.isfinite(column).all() for column in columns):
        raise EvaluationError("only rewards and promised rewards may be missing")
