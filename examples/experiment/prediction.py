"""Predictions made before the run, with the limits that falsify them, and the verdicts after it."""

from dataclasses import dataclass
from math import isinf, isnan
from typing import Literal

Verdict = Literal["as predicted", "weaker than predicted", "FALSIFIED", "not measured"]


@dataclass(frozen=True, slots=True)
class Prediction:
    """A number predicted before the run; beyond ``limit`` the claim is false."""

    key: str
    claim: str
    unit: str
    predicted: float
    limit: float
    at_least: bool = True
    """True if large numbers are good."""

    def verdict(self, measured: float) -> Verdict:
        """Returns the verdict on the claim by the measured number."""
        if isnan(measured):
            return "not measured"
        if self._reaches(measured, self.predicted):
            return "as predicted"
        return "weaker than predicted" if self._reaches(measured, self.limit) else "FALSIFIED"

    def _reaches(self, measured: float, bound: float) -> bool:
        return measured >= bound if self.at_least else measured <= bound

    @property
    def text(self) -> str:
        """Returns the prediction and its limit, for a reader."""
        beyond = "below" if self.at_least else "above"
        return f"{self.claim}: {self.aim}; falsified {beyond} {self.shown(self.limit)}"

    @property
    def aim(self) -> str:
        """Returns the predicted bound, for a reader."""
        return f"{'>=' if self.at_least else '<='} {self.shown(self.predicted)}"

    def shown(self, number: float) -> str:
        """Returns the number with its unit."""
        if isinf(number) or isnan(number):
            return "never" if isinf(number) else "-"
        return {"%": f"{number:+.0%}", "points": f"{number:+.1f}", "rating": f"{number:+.2f}"}.get(
            self.unit, f"{number:g}"
        )


def predictions(practice: int) -> tuple[Prediction, ...]:
    """Returns the predictions for an experiment with that many tasks of each kind for practice."""
    return (
        Prediction(
            "steps",
            "steps (a failure counts the budget), with memory against without",
            "%",
            -0.37,
            -0.25,
            at_least=False,
        ),
        Prediction("tokens", "tokens, with memory and its text against without", "%", -0.37, 0, at_least=False),
        Prediction("success", "points of success, with memory less without", "points", 15, 10),
        Prediction(
            "rating",
            "rating of the solution (failure: 1 + share reached; success: 3 + 2 * share of the budget left)",
            "rating",
            0.3,
            0.1,
        ),
        Prediction("wrong_family", "points of success, with memory of a wrong family less without", "points", -2, -2),
        Prediction("reuse", "test tasks solved with one same case or procedure", "tasks", 2, 2),
        Prediction(
            "break_even",
            "tasks of a kind, from an empty bank, until tokens saved exceed tokens added (median of the kinds)",
            "tasks",
            2,
            practice,
            at_least=False,
        ),
        Prediction(
            "compounding",
            "change of steps at the 5th to 10th task of a kind less that at the 2nd to 4th",
            "%",
            -0.10,
            0,
            at_least=False,
        ),
        Prediction(
            "reflection",
            "points of success after a change of the rules, with procedures that failed runs revise less the same kept",
            "points",
            10,
            2,
        ),
        Prediction(
            "reflection_steps",
            "steps after a change of the rules, with procedures that failed runs revise against the same kept",
            "%",
            -0.10,
            -0.02,
            at_least=False,
        ),
    )
