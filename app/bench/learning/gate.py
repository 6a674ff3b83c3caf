"""Benchmark 3: does the gate promote what is better, only that, and only on evidence that can carry it?"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from app.bench.learning.canary import Canary, Scenario, canary
from app.bench.measure import Measurement
from policy.evaluate import Interval, effective_sample, weights
from policy.gate import Verdict, judge
from policy.watch import watch

REPETITIONS = 200
PROMOTED_IF_NULL, PROMOTED_IF_WINNER, ERROR = 2.0, 90.0, 3.0

WINNER = Scenario(uplift=0.08)
NULL = Scenario(uplift=0.08, permuted=True)
EVEN = Scenario(uplift=0.0)
EVEN_STICKY = replace(EVEN, sticky=True)
HARMFUL = Scenario(uplift=-0.10, claimed=0.08)
TINY = Scenario(uplift=0.08, share=0.01)
SERVED = 4000
"""Decisions of which the default canary serves 1,000."""


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """One log, and what the gate said of it."""

    log: Canary
    verdict: Verdict

    @property
    def clears_difference(self) -> bool:
        """Returns whether the difference alone would have promoted, whatever calibration and segments say."""
        asked = [check.passed for check in self.verdict.checks if check.name.startswith("better than")]
        return bool(asked) and all(asked)


def trials(scenario: Scenario, seed: int, repetitions: int = REPETITIONS) -> list[Trial]:
    """Returns the verdicts on independent logs of one scenario."""
    found = []
    for rng in np.random.default_rng(seed).spawn(repetitions):
        log = canary(scenario, rng)
        found.append(Trial(log, judge(log.logged, log.contest, seed=seed)))
    return found


def run(seed: int) -> list[Measurement]:
    """Returns what the gate did with each kind of candidate, and how far its estimators are from the truth."""
    winners = trials(WINNER, seed)
    null = trials(NULL, seed + 1)
    return [
        _promoted("null, permuted rewards: promoted", null, PROMOTED_IF_NULL),
        _promoted("null, equal in value: promoted", trials(EVEN, seed + 2), PROMOTED_IF_NULL),
        _promoted(
            "null, equal in value, arm drawn per query: promoted", trials(EVEN_STICKY, seed + 7), PROMOTED_IF_NULL
        ),
        _winner("1,000 logged, canary of 25 %", winners),
        *_readings(seed + 3),
        _promoted("harmful -.10: promoted", trials(HARMFUL, seed + 4), 0.0),
        *_errors(winners),
        _coverage(winners),
        *_refused(trials(TINY, seed + 5)),
        *_watched(winners, np.random.default_rng(seed + 6)),
    ]


def _promoted(name: str, found: Sequence[Trial], aim: float, *, at_least: bool = False) -> Measurement:
    promoted = sum(trial.verdict.outcome == "promote" for trial in found)
    low, high = wilson(promoted, len(found))
    detail = (
        f"{promoted} of {len(found)}, 95 % {low:.1%}-{high:.1%}; by the difference alone"
        f" {sum(trial.clears_difference for trial in found)}; effective sample {_sample(found):.0f}"
    )
    return Measurement(name, 100 * promoted / len(found), "%", detail, aim, at_least)


def _winner(name: str, found: Sequence[Trial]) -> Measurement:
    """Returns how often a winner is promoted, beside what an estimator at the efficiency bound would reach."""
    measured = _promoted(f"winner +.08, {name}: promoted", found, PROMOTED_IF_WINNER, at_least=True)
    errors = np.array([trial.log.least_error for trial in found])
    asked = NormalDist().inv_cdf(found[0].verdict.settings.level)
    possible = np.mean([NormalDist().cdf(WINNER.uplift / error - asked) for error in errors])
    return replace(measured, detail=f"{measured.detail}; at the efficiency bound {possible:.0%}")


def _readings(seed: int) -> list[Measurement]:
    """Returns the winner's chance when the canary is larger or longer, or the policies agree more or less."""
    asked = {
        "1,000 served by the canary (4,000 logged)": replace(WINNER, decisions=SERVED),
        "1,000 logged, canary of 50 %": replace(WINNER, share=0.5),
        "1,000 logged, slates differ on 35 %": replace(WINNER, differ=0.35),
        "1,000 logged, slates differ on 100 %": replace(WINNER, differ=1.0),
        "1,000 logged, arm drawn per query": replace(WINNER, sticky=True),
    }
    return [_winner(name, trials(scenario, seed)) for name, scenario in asked.items()]


def _sample(found: Sequence[Trial]) -> float:
    """Returns the median effective sample of the candidates."""
    return float(
        np.median([effective_sample(weights(trial.log.logged, trial.log.contest.candidate)) for trial in found])
    )


def _errors(found: Sequence[Trial]) -> list[Measurement]:
    """Returns each estimator's root mean square error against the known truth, in points (hundredths of reward)."""
    measured = []
    for what, name in (("candidate", "value of the candidate"), ("candidate - default", "candidate - default")):
        for estimator in ("ips", "snips", "dr"):
            misses = np.array([_miss(trial, what, estimator) for trial in found if what in trial.verdict.estimates])
            mean, absolute = 100 * misses.mean(), 100 * np.abs(misses).mean()
            detail = f"{len(misses)} logs of 1,000; mean {mean:+.2f}, mean absolute {absolute:.2f}"
            error = 100 * float(np.sqrt(np.square(misses).mean()))
            measured.append(Measurement(f"error of {estimator}, {name}", error, "points", detail, ERROR))
    return measured


def _interval(trial: Trial, what: str, estimator: str = "dr") -> Interval:
    found: Interval = getattr(trial.verdict.estimates[what], estimator)
    return found


def _truth(trial: Trial, what: str) -> float:
    return trial.log.candidate_value - (trial.log.default_value if what == "candidate - default" else 0.0)


def _miss(trial: Trial, what: str, estimator: str) -> float:
    return _interval(trial, what, estimator).estimate - _truth(trial, what)


def _coverage(found: Sequence[Trial]) -> Measurement:
    """Returns how often the true uplift lies below its lower bound, which the level puts at 1 %."""
    what = "candidate - default"
    below = [_truth(trial, what) < _interval(trial, what).low for trial in found if what in trial.verdict.estimates]
    return Measurement("truth below the lower bound", 100 * float(np.mean(below)), "%", f"{len(below)} logs", 3.0)


def _refused(found: Sequence[Trial]) -> list[Measurement]:
    refused = sum(trial.verdict.outcome == "insufficient evidence" for trial in found)
    estimated = sum("candidate" in trial.verdict.estimates for trial in found)
    detail = f"{refused} of {len(found)}; effective sample {_sample(found):.0f}; estimated {estimated} times"
    share = 100 * refused / len(found)
    return [Measurement("tiny effective sample: refused", share, "%", detail, 100.0, at_least=True)]


def _watched(found: Sequence[Trial], rng: np.random.Generator) -> list[Measurement]:
    """Returns false alarms and delay of the automatic rollback, on the floors that the winners were promoted on."""
    alarms, delays = [], []
    for trial in found:
        if trial.verdict.outcome == "promote":
            floor, truth = _interval(trial, "candidate").low, trial.log.candidate_value
            alarms.append(watch((rng.random(5000) < truth).astype(np.float64), floor).roll_back)
            due = watch((rng.random(5000) < truth - 0.2).astype(np.float64), floor).at
            delays.append(5000 if due is None else due)
    late = f"90 % within {np.quantile(delays, 0.9):.0f}; asked after every decision"
    return [
        Measurement(
            "live reward as promised: rolled back", 100 * float(np.mean(alarms)), "%", "in 5,000 decisions", 1.0
        ),
        Measurement("live reward falls by .20: decisions until rollback", float(np.median(delays)), "", late),
    ]


def wilson(successes: int, trials_count: int, z: float = 1.96) -> tuple[float, float]:
    """Returns the 95 % interval of a share (Wilson 1927)."""
    share, extra = successes / trials_count, z * z / trials_count
    middle = (share + extra / 2) / (1 + extra)
    half = z / (1 + extra) * (share * (1 - share) / trials_count + extra / (4 * trials_count)) ** 0.5
    return middle - half, middle + half
