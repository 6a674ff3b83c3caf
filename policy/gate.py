"""The gate: a candidate serves only when logged evidence says that it beats what serves and the untrained default.

The verdict is one of four. **promote**: every check passed. **keep**: the evidence suffices, and the candidate is not
shown to be better (or is miscalibrated, or harms a segment); what serves goes on. **roll back**: what serves is shown
to be worse than the default. **insufficient evidence**: the log cannot answer, so nothing is estimated from it.

Both differences must pass, so the chance of promoting a candidate that is no better is at most the level's (an
intersection-union test, Berger 1982, needs no correction). It holds for each look: a candidate looked at every night
on a growing log has as many chances, which is why the default level is 99 %.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from policy.evaluate import (
    Estimates,
    Interval,
    Missingness,
    Plan,
    clustered_mean,
    difference_columns,
    difference_shares,
    effective_sample,
    estimate,
    group_sums,
    missingness,
    value_columns,
    weights,
)
from policy.logged import Logged, Target
from policy.reliability import Bin, Calibration, Segment, calibration, segments

Outcome = Literal["promote", "keep", "roll back", "insufficient evidence"]
CANDIDATE, SERVING, DEFAULT = "candidate", "serving", "default"


@dataclass(frozen=True, slots=True)
class Settings:
    """What the gate asks for.

    Attributes:
        level: one-sided, of each bound; 1 - level is the chance that a candidate that is no better passes a look.
        resamples: of whole query groups, for each interval.
        min_decisions: decisions with a reward.
        min_effective: Kish's effective sample of each policy compared, in decisions.
        min_groups: the same by query group: many decisions on few queries are few observations.
        support_z: a policy's mean weight is 1 when the log could have served all its slates; farther from 1 than this
            many standard errors and than ``support_gap``, it could not, or the propensities are wrong.
        support_gap: see ``support_z``; in units of weight.
        missing_z: rewards missing more often on one policy's slates, by so many standard errors ...
        missing_gap: ... and by at least this share, tell more about who answers than about who is better.
        ece_limit: the most that the calibration error may exceed what noise explains, in units of reward.
        calibration_bins: at most; of equal mass.
        segment_alpha: the chance that any segment is called worse when none is.
        min_segment_groups: segments with fewer query groups that tell the policies apart are reported, not tested.
    """

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
    """One question asked, its number and the limit; ``value`` is None where there was nothing to measure."""

    name: str
    value: float | None
    limit: float
    passed: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the gate says, with every number it looked at; JSON both ways (`as_json`, `from_json`).

    ``estimates`` holds only what the log could answer: values ("candidate", "serving", "default") and differences
    ("candidate - default", "candidate - serving", "serving - default").
    """

    outcome: Outcome
    checks: tuple[Check, ...]
    settings: Settings
    seed: int
    decisions: int
    groups: int
    missing: Missingness
    estimates: dict[str, Estimates] = field(default_factory=dict)
    calibration: Calibration | None = None
    segments: tuple[Segment, ...] = ()

    @property
    def reasons(self) -> tuple[str, ...]:
        """Returns why: the failed checks, or every check of a promotion."""
        failed = tuple(check.reason for check in self.checks if not check.passed)
        return failed or tuple(check.reason for check in self.checks)

    def as_json(self) -> dict[str, object]:
        """Returns the verdict as plain dicts, lists, strings and finite numbers."""
        return {**asdict(self), "reasons": list(self.reasons)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Verdict":
        """Returns the verdict that `as_json` described: each part has the fields of its class, whatever JSON says."""
        found = stored["calibration"]
        return cls(
            outcome=stored["outcome"],
            checks=tuple(Check(**check) for check in stored["checks"]),
            settings=Settings(**stored["settings"]),
            seed=stored["seed"],
            decisions=stored["decisions"],
            groups=stored["groups"],
            missing=Missingness(**stored["missing"]),
            estimates={name: _estimates(parts) for name, parts in stored["estimates"].items()},
            calibration=found and Calibration(**{**found, "bins": tuple(Bin(**row) for row in found["bins"])}),
            segments=tuple(Segment(**segment) for segment in stored["segments"]),
        )


def _estimates(stored: Mapping[str, Mapping[str, float]]) -> Estimates:
    return Estimates(**{name: Interval(**interval) for name, interval in stored.items()})


@dataclass(frozen=True, slots=True, eq=False)
class Contest:
    """The policies on the rows of one log; ``serving`` is the default itself until something was promoted."""

    candidate: Target
    serving: Target
    default: Target

    def named(self) -> dict[str, Target]:
        """Returns the policies by name."""
        return {CANDIDATE: self.candidate, SERVING: self.serving, DEFAULT: self.default}


def judge(logged: Logged, contest: Contest, settings: Settings | None = None, seed: int = 0) -> Verdict:
    """Returns the verdict on the candidate.

    Rows without a reward are left out, and counted. Raises an EvaluationError only where the arrays make no sense;
    too little evidence is a verdict.
    """
    settings = settings or Settings()
    missing = missingness(logged, contest.candidate, contest.default)
    seen = np.isfinite(logged.reward)
    log = logged.take(seen)
    targets = {name: target.take(seen) for name, target in contest.named().items()}
    shared = list(_log_checks(log, missing, settings))
    support = {name: list(_support_checks(name, log, target, settings)) for name, target in targets.items()}
    if not all(check.passed for check in shared):
        support = {name: [] for name in support}
    sound = {name for name, asked in support.items() if asked and all(check.passed for check in asked)}
    plan = Plan(level=settings.level, resamples=settings.resamples, seed=seed)
    estimates = _all_estimates(log, {name: targets[name] for name in targets if name in sound}, plan)
    checks = shared + [check for asked in support.values() for check in asked]
    found: Calibration | None = None
    parts: tuple[Segment, ...] = ()
    if len(sound) == len(targets):
        found = _calibration(log, targets[CANDIDATE], settings)
        shares = difference_shares(log, targets[CANDIDATE], targets[SERVING], plan)
        parts = segments(shares, log, settings.segment_alpha, settings.min_segment_groups)
        checks += _merit_checks(estimates, found, parts, settings)
    checks += _serving_checks(estimates)
    outcome = _outcome(checks, sufficient=len(sound) == len(targets))
    groups = len(np.unique(log.group))
    return Verdict(outcome, tuple(checks), settings, seed, len(log.reward), groups, missing, estimates, found, parts)


def _outcome(checks: Iterable[Check], *, sufficient: bool) -> Outcome:
    """Returns the verdict; a better candidate replaces a serving policy that is worse than the default."""
    failed = {check.name for check in checks if not check.passed}
    if sufficient and failed <= {"serving is not worse"}:
        return "promote"
    if "serving is not worse" in failed:
        return "roll back"
    return "keep" if sufficient else "insufficient evidence"


def _at_least(name: str, value: float, limit: float, what: str) -> Check:
    reached = value >= limit
    return Check(name, float(value), float(limit), reached, f"{what}: {value:.4g}, at least {limit:g} asked")


def _at_most(name: str, value: float, limit: float, what: str) -> Check:
    return Check(name, float(value), float(limit), value <= limit, f"{what}: {value:.4g}, at most {limit:g} allowed")


def _log_checks(log: Logged, missing: Missingness, settings: Settings) -> Iterable[Check]:
    """Yields what the log must hold whichever policy is asked about."""
    yield _at_least("decisions", len(log.reward), settings.min_decisions, "decisions with a reward")
    distinct = len(np.unique(log.reward))
    yield _at_least("rewards differ", distinct, 2, "distinct rewards")
    gap = abs(missing.rate_candidate - missing.rate_default)
    informative = abs(missing.z) > settings.missing_z and gap > settings.missing_gap
    reason = f"rewards missing: {missing.missing} of {missing.rows}; by arm they differ by {gap:.4g}"
    yield Check("missing rewards", gap, settings.missing_gap, not informative, reason)


def _support_checks(name: str, log: Logged, target: Target, settings: Settings) -> Iterable[Check]:
    """Yields whether the log holds enough of this policy's slates, from the weights alone."""
    weight = weights(log, target)
    sample = effective_sample(weight)
    yield _at_least(f"effective sample of {name}", sample, settings.min_effective, f"effective sample ({name})")
    groups = effective_sample(group_sums(weight, log.group)) if len(weight) else 0.0
    yield _at_least(f"effective groups of {name}", groups, settings.min_groups, f"effective query groups ({name})")
    mean, error = clustered_mean(weight, log.group) if len(weight) else (0.0, 0.0)
    gap = abs(mean - 1)
    supported = gap <= max(settings.support_gap, settings.support_z * error)
    reason = f"mean weight ({name}): {mean:.4g}, 1 when the log could have served all its slates"
    yield Check(f"support of {name}", gap, settings.support_gap, supported, reason)


def _all_estimates(log: Logged, targets: Mapping[str, Target], plan: Plan) -> dict[str, Estimates]:
    """Returns the values and differences of the policies that the log can speak of, from the same resamples."""
    columns = {name: value_columns(log, target, plan) for name, target in targets.items()}
    for one, other in ((CANDIDATE, DEFAULT), (CANDIDATE, SERVING), (SERVING, DEFAULT)):
        if one in targets and other in targets:
            columns[f"{one} - {other}"] = difference_columns(log, targets[one], targets[other], plan)
    return estimate(columns, log.group, plan) if columns else {}


def _calibration(log: Logged, candidate: Target, settings: Settings) -> Calibration | None:
    """Returns how well the candidate's promises held, over the slates that it would serve."""
    if candidate.predicted is None:
        return None
    return calibration(candidate.predicted, log.reward, weights(log, candidate), settings.calibration_bins)


def _merit_checks(
    estimates: Mapping[str, Estimates], found: Calibration | None, parts: Iterable[Segment], settings: Settings
) -> Iterable[Check]:
    """Yields what a candidate must show once the log can answer."""
    for other in (DEFAULT, SERVING):
        seen = estimates[f"{CANDIDATE} - {other}"].dr
        reason = (
            f"candidate - {other}: {seen.estimate:+.4f}, {settings.level:.1%} sure of more than {seen.low:+.4f};"
            " the lower bound must be above zero"
        )
        yield Check(f"better than {other}", seen.low, 0.0, seen.low > 0, reason)
    if found is None:
        yield Check("calibration", None, settings.ece_limit, passed=False, reason="the candidate promised no rewards")
    else:
        what = f"calibration error {found.ece:.4g}, of which beyond noise"
        yield _at_most("calibration", found.excess, settings.ece_limit, what)
    worse = [part for part in parts if part.worse]
    told = "; ".join(f"segment {part.segment}: {part.difference:+.4f} on {part.rows} decisions" for part in worse)
    yield Check("no segment worse", float(len(worse)), 0.0, not worse, told or "no segment is significantly worse")


def _serving_checks(estimates: Mapping[str, Estimates]) -> list[Check]:
    """Returns whether what serves is still no worse than the default, where the log can say."""
    found = estimates.get(f"{SERVING} - {DEFAULT}")
    if found is None:
        return []
    seen = found.dr
    reason = f"serving - default: {seen.estimate:+.4f}, below {seen.high:+.4f}; an upper bound below zero rolls back"
    return [Check("serving is not worse", seen.high, 0.0, seen.high >= 0, reason)]
