"""Logged decisions with exact propensities, and the policies to evaluate on them."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class EvaluationError(ValueError):
    """The log cannot be evaluated as it was given."""


class NotFinite(EvaluationError):
    """A number is NaN or infinite where only a reward may be missing."""


class OutOfRange(EvaluationError):
    """A reward or a probability lies outside its range."""


class ShapeMismatch(EvaluationError):
    """Two columns of the log differ in length."""


@dataclass(frozen=True, slots=True, eq=False)
class Logged:
    """n logged decisions; rows are decisions.

    Attributes:
        reward: (n,), 0 to 1; NaN is missing, never zero.
        logged_propensity: (n,), above 0 to 1: of the logged slate, the sum over all policies that might have served it.
        group: (n,), the query; whatever was drawn once for several decisions (a sticky canary) lies within one group.
        segment: (n,), any partition that must not lose: a kind of task, a language.
        covariates: (n, k), known before the arm was drawn; None for none. A reward of the same group and log
            is no such thing under a sticky canary: take it from earlier decisions.
    """

    reward: Floats
    logged_propensity: Floats
    group: Ints
    segment: Ints
    covariates: Floats | None = None

    def __post_init__(self) -> None:
        """Raises EvaluationError for numbers that no log can hold."""
        same_length(self.reward, self.logged_propensity, self.group, self.segment, self.covariates)
        _finite(self.logged_propensity, self.covariates)
        if np.isinf(self.reward).any():
            raise NotFinite("a reward is infinite")
        if ((self.reward < 0) | (self.reward > 1)).any():
            raise OutOfRange("rewards lie within 0 and 1")
        if ((self.logged_propensity <= 0) | (self.logged_propensity > 1)).any():
            raise OutOfRange("the propensity of what was logged lies above 0 and at most at 1")

    def take(self, rows: NDArray[np.bool_] | NDArray[np.int64]) -> "Logged":
        """Returns the log of these rows only."""
        return replace(
            self,
            reward=self.reward[rows],
            logged_propensity=self.logged_propensity[rows],
            group=self.group[rows],
            segment=self.segment[rows],
            covariates=None if self.covariates is None else self.covariates[rows],
        )


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """A policy to be judged, on the rows of a log.

    Attributes:
        target_probability: (n,), 0 to 1, of the logged slate under this policy; 0 or 1 where it does not explore.
        predicted: (n,), 0 to 1, this policy's predicted reward of the logged slate; NaN without a prediction.
    """

    target_probability: Floats
    predicted: Floats | None = None

    def __post_init__(self) -> None:
        """Raises EvaluationError for numbers that no policy can have."""
        same_length(self.target_probability, self.predicted)
        _finite(self.target_probability)
        if ((self.target_probability < 0) | (self.target_probability > 1)).any():
            raise OutOfRange("a policy's probability of a slate lies within 0 and 1")
        if self.predicted is not None and np.isinf(self.predicted).any():
            raise NotFinite("a promised reward is infinite")

    def take(self, rows: NDArray[np.bool_]) -> "Target":
        """Returns the target on these rows only."""
        return Target(self.target_probability[rows], None if self.predicted is None else self.predicted[rows])


def same_length(first: NDArray[np.float64], *others: NDArray[np.float64] | NDArray[np.int64] | None) -> None:
    """Raises ShapeMismatch unless every column has the first one's rows."""
    if first.ndim != 1 or any(other is not None and len(other) != len(first) for other in others):
        raise ShapeMismatch("every column has one row per decision")


def _finite(*columns: Floats | None) -> None:
    """Raises NotFinite unless every number is finite."""
    if not all(column is None or np.isfinite(column).all() for column in columns):
        raise NotFinite("only rewards and promised rewards may be missing")
