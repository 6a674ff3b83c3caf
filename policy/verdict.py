"""Settings and verdict of the gate, with every number behind it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from policy.course import Course
from policy.evaluate import Estimates, Interval, Missingness
from policy.reliability import Bin, Calibration, Segment
from policy.spending import Spending

GateOutcome = Literal["promote", "keep", "futile", "roll back", "insufficient evidence"]


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the gate.

    Attributes:
        spending: chance of promoting a candidate that is no better, spread over a trial.
        futility: a trial ends when the chance that it will ever be won is below this.
        level: one-sided level of the bounds beside each estimate.
        resamples: resamples of whole query groups, for each interval.
        min_decisions: decisions with a reward.
        min_effective: Kish's effective sample of each policy compared, in decisions.
        min_groups: the same by query group: many decisions on few queries are few observations.
        support_z: a policy's mean weight is 1 when the log could have served all its slates; farther from 1 than this
            many standard errors and than ``support_gap``, it could not, or the propensities are wrong.
        support_gap: see ``support_z``; in units of weight.
        missing_z: rewards missing more often on one policy's slates, by so many standard errors ...
        missing_gap: ... and by at least this share, tell more about who answers than about who is better.
        ece_limit: the most that the calibration error may exceed what noise explains, in units of reward.
        calibration_bins: largest number of bins, of equal mass.
        segment_alpha: chance that a segment is called worse when none is.
        min_segment_groups: segments with fewer query groups that tell the policies apart are reported, not tested.
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

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Settings":
        """Returns the settings that ``asdict`` described; older verdicts know of no spending."""
        return cls(**{**stored, "spending": Spending(**stored.get("spending", {}))})


@dataclass(frozen=True, slots=True)
class Check:
    """One check, its number and the limit; ``value`` is None if it could not be measured."""

    name: str
    value: float | None
    limit: float
    passed: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Outlook:
    """Prospects of a trial.

    Attributes:
        more: rewarded decisions until it is won, if the differences stay; 0: it is; None: not before its end.
        chance: probability that it is won before its end; None before the first look.
    """

    more: int | None
    chance: float | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """Verdict of the gate, with every number behind it; JSON both ways (`as_json`, `from_json`).

    ``estimates`` holds only what the log could answer: values ("candidate", "serving", "default") and differences
    ("candidate - default", "candidate - serving", "serving - default"). ``courses`` has each look at the differences
    that are tested ("candidate - default", "candidate - serving", "default - serving").
    """

    outcome: GateOutcome
    checks: tuple[Check, ...]
    settings: Settings
    seed: int
    decisions: int
    groups: int
    missing: Missingness
    estimates: dict[str, Estimates] = field(default_factory=dict)
    calibration: Calibration | None = None
    segments: tuple[Segment, ...] = ()
    courses: dict[str, Course] = field(default_factory=dict)
    outlook: Outlook | None = None

    @property
    def reasons(self) -> tuple[str, ...]:
        """Reasons of the failed checks, or of every check of a promotion."""
        failed = tuple(check.reason for check in self.checks if not check.passed)
        return failed or tuple(check.reason for check in self.checks)

    def as_json(self) -> dict[str, object]:
        """Returns the verdict as plain dicts, lists, strings and finite numbers."""
        return {**asdict(self), "reasons": list(self.reasons)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Verdict":
        """Returns the verdict that `as_json` described: each part has the fields of its class, not those of JSON."""
        measured, outlook = stored["calibration"], stored.get("outlook")
        return cls(
            outcome=stored["outcome"],
            checks=tuple(Check(**check) for check in stored["checks"]),
            settings=Settings.from_json(stored["settings"]),
            seed=stored["seed"],
            decisions=stored["decisions"],
            groups=stored["groups"],
            missing=Missingness(**stored["missing"]),
            estimates={
                name: Estimates(**{kind: Interval(**interval) for kind, interval in parts.items()})
                for name, parts in stored["estimates"].items()
            },
            calibration=measured and Calibration(**{**measured, "bins": tuple(Bin(**row) for row in measured["bins"])}),
            segments=tuple(Segment(**segment) for segment in stored["segments"]),
            courses={name: Course.from_json(course) for name, course in stored.get("courses", {}).items()},
            outlook=outlook and Outlook(**outlook),
        )
