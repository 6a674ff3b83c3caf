"""Settings of the gate, and its verdict with every number behind the verdict."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Any, Literal

from pydantic import TypeAdapter

from policy.course import Course
from policy.evaluate import Interval, Missingness
from policy.reliability import Calibration, Segment
from policy.spending import Spending

GateOutcome = Literal["promote", "keep", "futile", "roll back", "insufficient evidence"]


@dataclass(frozen=True, slots=True)
class GateSettings:
    """Settings of the gate: limits of its checks, and the numbers of its estimates.

    Attributes:
        spending: chance of promoting a candidate that is no better, and how the looks of a trial spend it.
        futility: a trial ends when the candidate's chance to ever pass falls below this.
        level: one-sided level of the two bounds of each estimate.
        resamples: number of bootstrap resamples of whole query groups for each interval.
        min_decisions: least number of decisions with a reward.
        min_effective: least effective sample of each compared policy, in decisions (Kish 1965).
        min_groups: least effective sample of each compared policy, in query groups: many decisions on few queries are
            few observations.
        support_z: number of standard errors that a policy's mean weight may differ from 1. It is 1 if the log could
            have served all the policy's slates; farther from 1, by ``support_gap`` as well, the log could not, or its
            propensities are wrong.
        support_gap: difference of a policy's mean weight from 1 that is always allowed, see ``support_z``.
        missing_z: number of standard errors by which rewards may be missing more often on one policy's slates. If they
            differ by more, and by ``missing_gap`` as well, rewards depend on who gives them and the check fails.
        missing_gap: difference of the shares of missing rewards that is always allowed, see ``missing_z``.
        ece_limit: largest calibration error that noise does not explain, in units of reward.
        calibration_bins: largest number of bins, of equal weight, for the calibration error.
        segment_alpha: chance that a segment is called worse when none is; segments are tested once, after the candidate
            was found better as a whole.
        min_segment_groups: least number of query groups on which the policies differ, for a test of the segment;
            smaller segments are only reported.
    """

    spending: Spending = field(default_factory=Spending)
    futility: float = 0.025
    level: float = 0.99
    resamples: int = 2000
    min_decisions: int = 300
    min_effective: float = 200.0
    min_groups: float = 30.0
    support_z: float = 3.5
    support_gap: float = 0.05
    missing_z: float = 3.0
    missing_gap: float = 0.1
    ece_limit: float = 0.1
    calibration_bins: int = 10
    segment_alpha: float = 0.05
    min_segment_groups: int = 20


@dataclass(frozen=True, slots=True)
class Check:
    """One check of the gate.

    Attributes:
        value: the number that was measured; None if the log did not allow it.
        limit: the number that the value is compared with.
        reason: sentence that explains the result.
    """

    name: str
    value: float | None
    limit: float
    passed: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Outlook:
    """Prospects of a candidate's trial.

    Attributes:
        more: number of further rewarded decisions until the candidate wins, if the differences stay as they are; 0: it
            has won; None: it would not win before the trial's end, or that is unknown.
        chance: probability that the candidate wins before the trial's end; None before the first look.
    """

    more: int | None = None
    chance: float | None = None

    def sentence(self) -> str:
        """Returns the prospects in a few words, for a table."""
        if self.more is None:
            return "not to be won" if self.chance is not None else "nobody can say yet"
        chance = "" if self.chance is None else f", promoted with a chance of {self.chance:.0%}"
        return f"{self.more} more decisions{chance}" if self.more else "won"


ENDED = Outlook(None, 0.0)
"""Prospects of a trial that ended without a promotion."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Verdict of the gate on a candidate, with every number behind it.

    ``estimates`` holds only what the log could answer: values ("candidate", "serving", "default") and differences
    ("candidate - default", "candidate - serving", "serving - default"). ``courses`` has the looks at each difference
    that is tested ("candidate - default", "candidate - serving", "default - serving").
    """

    outcome: GateOutcome
    checks: tuple[Check, ...]
    settings: GateSettings
    seed: int
    decisions: int
    groups: int
    missing: Missingness
    estimates: dict[str, Interval] = field(default_factory=dict)
    calibration: Calibration | None = None
    segments: tuple[Segment, ...] = ()
    courses: dict[str, Course] = field(default_factory=dict)
    outlook: Outlook = field(default_factory=Outlook)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Reasons of the failed checks; if none failed, those of all checks."""
        failed = tuple(check.reason for check in self.checks if not check.passed)
        return failed or tuple(check.reason for check in self.checks)

    def more_days(self, age: timedelta) -> float | None:
        """Returns the days that a trial of this age still takes at its rate of decisions so far; None: unknown."""
        if self.outlook.more is None or not self.decisions:
            return None
        return self.outlook.more / self.decisions * (age / timedelta(days=1))

    def as_json(self) -> dict[str, object]:
        """Returns the verdict as a JSON object: plain dicts, lists, strings and finite numbers."""
        return {**asdict(self), "reasons": list(self.reasons)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Verdict":
        """Returns the verdict from the JSON object that ``as_json`` made of it; other versions' fields are left out."""
        return TypeAdapter(cls).validate_python(stored)


def trial_of(stored: Mapping[str, Any] | None) -> Verdict | None:
    """Returns the verdict on a trial from its stored JSON; None: there is none, or this version cannot read it."""
    try:
        return None if stored is None else Verdict.from_json(stored)
    except ValueError:  # another version stored it in another form
        return None
