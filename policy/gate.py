"""The gate: promotes a candidate only if the log shows that it beats the serving policy and the untrained default.

The verdict is one of five. **promote**: every check passed. **insufficient evidence**: the log cannot answer yet, and
the trial goes on. **futile**: the candidate can hardly win any more, and the trial ends. **keep**: the candidate is
miscalibrated or harms a segment, or its trial is over; the serving policy goes on. **roll back**: the serving policy is
shown to be worse than the default.

The gate may judge as often as one likes: whatever the number of looks, the chance that a candidate which is no better
is ever promoted is at most ``Spending.error`` (`policy.spending`). Both differences must pass, which needs no
correction (an intersection-union test, Berger 1982).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from policy.course import Course, course_of
from policy.decide import CANDIDATE, DEFAULT, SERVING
from policy.evaluate import (
    Interval,
    Missingness,
    Resampling,
    clustered_mean,
    difference_shares,
    effective_sample,
    estimate,
    group_sums,
    missingness,
    value_shares,
    weights,
)
from policy.logged import Logged, Target
from policy.reliability import Calibration, Segment, calibration, segments
from policy.verdict import ENDED, Check, GateOutcome, GateSettings, Outlook, Verdict

TESTED = ((CANDIDATE, DEFAULT), (CANDIDATE, SERVING), (DEFAULT, SERVING))
"""The differences of policies that a trial tests: the first two decide on a promotion, the last one on a rollback."""
COUNTED = ("decisions", "effective sample", "effective groups")
"""Prefixes of the names of checks that fail only because the log has too few decisions."""


@dataclass(frozen=True, slots=True, eq=False)
class Contest:
    """The three policies that a trial compares on one log; ``serving`` is the default until a policy was promoted."""

    candidate: Target
    serving: Target
    default: Target

    def named(self) -> dict[str, Target]:
        """Returns the three policies by their names."""
        return {CANDIDATE: self.candidate, SERVING: self.serving, DEFAULT: self.default}


def judge(logged: Logged, contest: Contest, settings: GateSettings | None = None, seed: int = 0) -> Verdict:
    """Returns the gate's verdict on the candidate of a trial.

    Too little evidence is a verdict, too; an EvaluationError is raised only for arrays that make no sense.

    Decisions without a reward are counted, but not evaluated.
    """
    settings = settings or GateSettings()
    missing = missingness(logged, contest.candidate, contest.default)
    seen = np.isfinite(logged.reward)
    log = logged.take(seen)
    targets = {name: target.take(seen) for name, target in contest.named().items()}
    shared = list(_log_checks(log, missing, settings))
    support = {name: list(_support_checks(name, log, target, settings)) for name, target in targets.items()}
    if not all(check.passed for check in shared):
        support = {name: [] for name in support}
    sound = {name for name, own in support.items() if own and all(check.passed for check in own)}
    resampling = Resampling(level=settings.level, resamples=settings.resamples, seed=seed)
    known = {name: targets[name] for name in targets if name in sound}
    estimates = _all_estimates(log, known, resampling)
    courses = _courses(log, known, seed, settings)
    checks = shared + [check for own in support.values() for check in own]
    reliability: Calibration | None = None
    parts: tuple[Segment, ...] = ()
    sufficient = len(sound) == len(targets)
    if sufficient:
        candidate = targets[CANDIDATE]
        if candidate.predicted is not None:
            weight = weights(log, candidate)
            reliability = calibration(candidate.predicted, log.reward, weight, settings.calibration_bins)
        shares = difference_shares(log, targets[CANDIDATE], targets[SERVING], seed)
        merits = list(_merit_checks(estimates, courses, settings))
        won = all(check.passed for check in merits)  # the segments are tested once, and then the trial ends
        least = settings.min_segment_groups if won else len(log.reward) + 1
        parts = segments(shares, log, settings.segment_alpha, least)
        checks += merits
        checks += _trust_checks(reliability, parts, settings)
    checks += _serving_checks(courses)
    outlook = _outlook(checks, courses, len(log.reward), sufficient=sufficient)
    outcome = _outcome(checks, outlook, len(log.reward), settings, sufficient=sufficient)
    if outcome not in {"promote", "insufficient evidence"}:
        outlook = ENDED
    groups = len(np.unique(log.group))
    return Verdict(
        outcome,
        tuple(checks),
        settings,
        seed,
        len(log.reward),
        groups,
        missing,
        estimates,
        reliability,
        parts,
        courses,
        outlook,
    )


def _outcome(
    checks: Iterable[Check], outlook: Outlook, decisions: int, settings: GateSettings, *, sufficient: bool
) -> GateOutcome:
    """Returns the verdict's outcome; a better candidate is promoted in place of a serving policy that is worse."""
    failed = {check.name for check in checks if not check.passed}
    if sufficient and failed <= {"serving is not worse"}:
        return "promote"
    if "serving is not worse" in failed:
        return "roll back"
    if decisions >= settings.spending.longest:
        return "keep"
    if not sufficient:
        return "insufficient evidence"
    if failed - {f"better than {other}" for other in (DEFAULT, SERVING)}:
        return "keep"
    is_futile = outlook.chance is not None and outlook.chance < settings.futility
    return "futile" if is_futile else "insufficient evidence"


def _outlook(checks: Iterable[Check], courses: Mapping[str, Course], decisions: int, *, sufficient: bool) -> Outlook:
    """Returns the prospects of the trial: those of the difference that is farther from passing.

    Without enough decisions for a look, they are the decisions until the log has enough.
    """
    pair = [courses[name] for name in (f"{CANDIDATE} - {DEFAULT}", f"{CANDIDATE} - {SERVING}") if name in courses]
    if sufficient and pair:
        more = [course.more for course in pair]
        if set(more) == {0} and any(each.name.startswith("better than") and not each.passed for each in checks):
            return Outlook(None, None)  # it passed, and seems no better by now
        chances = [course.chance for course in pair if course.chance is not None]
        return Outlook(None if None in more else max(filter(None, more), default=0), min(chances, default=None))
    lacking = [check for check in checks if not check.passed and check.name.startswith(COUNTED)]
    if not lacking or any(not check.value for check in lacking):
        return Outlook(None, None)  # what fails, or may fail, is not a matter of more decisions
    wanted = max(check.limit / (check.value or 1) * decisions for check in lacking)
    return Outlook(int(np.ceil(wanted)) - decisions, None)


def _at_least(name: str, value: float, limit: float, what: str) -> Check:
    reached = value >= limit
    return Check(name, float(value), float(limit), reached, f"{what}: {value:.4g}, at least {limit:g} asked")


def _log_checks(log: Logged, missing: Missingness, settings: GateSettings) -> Iterable[Check]:
    """Yields the checks of the log that concern every policy: decisions, differing rewards and missing rewards."""
    yield _at_least("decisions", len(log.reward), settings.min_decisions, "decisions with a reward")
    distinct = len(np.unique(log.reward))
    yield _at_least("rewards differ", distinct, 2, "distinct rewards")
    gap = abs(missing.rate_candidate - missing.rate_default)
    informative = abs(missing.z) > settings.missing_z and gap > settings.missing_gap
    reason = f"rewards missing: {missing.missing} of {missing.rows}; by arm they differ by {gap:.4g}"
    yield Check("missing rewards", gap, settings.missing_gap, not informative, reason)


def _support_checks(name: str, log: Logged, target: Target, settings: GateSettings) -> Iterable[Check]:
    """Yields the checks that the log has enough of this policy's slates, which follow from the importance weights."""
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


def _all_estimates(log: Logged, targets: Mapping[str, Target], resampling: Resampling) -> dict[str, Interval]:
    """Returns the estimated values and differences of these policies, all from the same resamples."""
    shares = {name: value_shares(log, target, resampling.seed) for name, target in targets.items()}
    for one, other in ((CANDIDATE, DEFAULT), (CANDIDATE, SERVING), (SERVING, DEFAULT)):
        if one in targets and other in targets:
            shares[f"{one} - {other}"] = difference_shares(log, targets[one], targets[other], resampling.seed)
    return estimate(shares, log.group, resampling) if shares else {}


def _courses(log: Logged, targets: Mapping[str, Target], seed: int, settings: GateSettings) -> dict[str, Course]:
    """Returns the course of each difference that is tested."""

    def enough(first: Logged, *pair: Target) -> bool:
        return len(first.reward) >= settings.min_decisions and all(
            effective_sample(weight) >= settings.min_effective
            and effective_sample(group_sums(weight, first.group)) >= settings.min_groups
            for weight in (weights(first, target) for target in pair)
        )

    return {
        f"{one} - {other}": course_of(log, (targets[one], targets[other]), settings.spending, seed, enough)
        for one, other in TESTED
        if one in targets and other in targets
    }


def _merit_checks(
    estimates: Mapping[str, Interval], courses: Mapping[str, Course], settings: GateSettings
) -> Iterable[Check]:
    """Yields the checks that a look has found the candidate better than each other policy, and it still is."""
    for other in (DEFAULT, SERVING):
        name = f"{CANDIDATE} - {other}"
        course, now = courses[name], estimates[name].estimate
        shown = course.passing or next(reversed(course.looks), None)
        passed = course.passing is not None and now > 0
        reason = f"{name}: {now:+.4f}; {_summary(course, settings)}"
        z, bound = (shown.z, shown.bound) if shown else (None, 0.0)
        yield Check(f"better than {other}", z, bound, passed, reason)


def _summary(course: Course, settings: GateSettings) -> str:
    """Returns the result of the looks at a difference in words, and what to expect of further looks."""
    if not course.looks:
        return "no look has told the two apart"
    look = course.passing or course.looks[-1]
    text = (
        f"after {look.decisions} decisions it was {look.z:.2f} standard errors above zero, {look.bound:.2f} asked"
        f" ({len(course.looks)} looks)"
    )
    if course.passing is not None:
        return text
    if course.chance is not None and course.chance < settings.futility:
        return f"{text}; futile: the chance to pass by {settings.spending.longest} is {course.chance:.1%}"
    longest = settings.spending.longest
    return f"{text}; " + (
        f"not before {longest} if it stays so" if course.more is None else f"{course.more} more if it stays so"
    )


def _trust_checks(reliability: Calibration | None, parts: Iterable[Segment], settings: GateSettings) -> Iterable[Check]:
    """Yields the checks that the candidate's predicted rewards are calibrated, and that it is worse in no segment."""
    if reliability is None:
        yield Check("calibration", None, settings.ece_limit, passed=False, reason="the candidate promised no rewards")
    else:
        what = f"calibration error {reliability.ece:.4g}, of which beyond noise"
        reason = f"{what}: {reliability.excess:.4g}, at most {settings.ece_limit:g} allowed"
        passed = reliability.excess <= settings.ece_limit
        yield Check("calibration", float(reliability.excess), float(settings.ece_limit), passed, reason)
    worse = [part for part in parts if part.worse]
    named = "; ".join(f"segment {part.segment}: {part.difference:+.4f} on {part.rows} decisions" for part in worse)
    yield Check("no segment worse", float(len(worse)), 0.0, not worse, named or "no segment is significantly worse")


def _serving_checks(courses: Mapping[str, Course]) -> list[Check]:
    """Returns the check that the serving policy is no worse than the default, if the log has enough."""
    course = courses.get(f"{DEFAULT} - {SERVING}")
    if course is None or not course.looks:
        return []
    look = course.passing or course.looks[-1]
    reason = (
        f"default - serving: {look.difference:+.4f} after {look.decisions} decisions, {look.z:.2f} standard errors"
        f" above zero; at {look.bound:.2f} it is rolled back"
    )
    return [Check("serving is not worse", look.z, look.bound, course.passing is None, reason)]
