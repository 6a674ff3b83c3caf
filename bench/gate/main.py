"""``python -m bench gate``: promotions by the gate, and the accuracy of its estimators on logs of 1,000 decisions.

Whole trials are in ``bench.gate.trials``.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bench.gate import trials
from bench.gate.canary import Canary, Scenario, canary
from bench.measure import Measurement
from policy.evaluate import effective_sample, weights
from policy.gate import judge
from policy.verdict import Verdict
from policy.watch import watch

REPETITIONS, ERROR = 200, 3.0
SEED = 0

WINNER = Scenario(uplift=0.08)
TINY = Scenario(uplift=0.08, share=0.01)


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """One log with the gate's verdict."""

    log: Canary
    verdict: Verdict


def judged(scenario: Scenario, seed: int, repetitions: int = REPETITIONS) -> list[Trial]:
    """Returns the verdicts on independent logs of one scenario."""
    logs = []
    for rng in np.random.default_rng(seed).spawn(repetitions):
        log = canary(scenario, rng)
        logs.append(Trial(log, judge(log.logged, log.contest, seed=seed)))
    return logs


def gate(seed: int = SEED, lives: int = trials.TRIALS, repetitions: int = REPETITIONS) -> list[Measurement]:
    """Returns the gate's promotions of each kind of candidate, and its estimators' distance from the truth.

    Args:
        seed: seed of all worlds and logs.
        lives: number of whole trials of each kind.
        repetitions: number of single logs of each kind.
    """
    winners = judged(WINNER, seed, repetitions)
    rows = [
        *trials.run(seed, lives),
        *_errors(winners),
        _coverage(winners),
        *_refused(judged(TINY, seed + 5, repetitions)),
        *_watched(winners, np.random.default_rng(seed + 6)),
    ]
    return [replace(row, name=f"gate {row.name}") for row in rows]


def _sample(logs: Sequence[Trial]) -> float:
    """Returns the median effective sample of the candidates."""
    return float(
        np.median([effective_sample(weights(trial.log.logged, trial.log.contest.candidate)) for trial in logs])
    )


def _errors(logs: Sequence[Trial]) -> list[Measurement]:
    """Returns the estimate's root mean square error against the known truth, in points (hundredths of reward)."""
    measured = []
    for what, name in (("candidate", "value of the candidate"), ("candidate - default", "candidate - default")):
        misses = np.array(
            [
                trial.verdict.estimates[what].estimate - _truth(trial, what)
                for trial in logs
                if what in trial.verdict.estimates
            ]
        )
        mean, absolute = 100 * misses.mean(), 100 * np.abs(misses).mean()
        detail = f"{len(misses)} logs of 1,000; mean {mean:+.2f}, mean absolute {absolute:.2f}"
        error = 100 * float(np.sqrt(np.square(misses).mean()))
        measured.append(Measurement(f"error of the estimate, {name}", error, "points", detail, ERROR))
    return measured


def _truth(trial: Trial, what: str) -> float:
    return trial.log.candidate_value - (trial.log.default_value if what == "candidate - default" else 0.0)


def _coverage(logs: Sequence[Trial]) -> Measurement:
    """Returns the share of true uplifts below their lower bound, 1 % by its level."""
    what = "candidate - default"
    below = [
        _truth(trial, what) < trial.verdict.estimates[what].low for trial in logs if what in trial.verdict.estimates
    ]
    return Measurement("truth below the lower bound", 100 * float(np.mean(below)), "%", f"{len(below)} logs", 3.0)


def _refused(logs: Sequence[Trial]) -> list[Measurement]:
    refused = sum(trial.verdict.outcome == "insufficient evidence" for trial in logs)
    estimated = sum("candidate" in trial.verdict.estimates for trial in logs)
    detail = f"{refused} of {len(logs)}; effective sample {_sample(logs):.0f}; estimated {estimated} times"
    share = 100 * refused / len(logs)
    return [Measurement("tiny effective sample: refused", share, "%", detail, 100.0, at_least=True)]


def _watched(logs: Sequence[Trial], rng: np.random.Generator) -> list[Measurement]:
    """Returns false alarms and delay of the automatic rollback, on the floors that the winners were promoted on."""
    alarms, delays = [], []
    for trial in logs:
        if trial.verdict.outcome == "promote":
            floor, truth = trial.verdict.estimates["candidate"].low, trial.log.candidate_value
            alarms.append(watch((rng.random(5000) < truth).astype(np.float64), floor).roll_back)
            fallen = (rng.random(5000) < truth - 0.2).astype(np.float64)
            alarm = bisect_left(range(5000), True, key=lambda count: watch(fallen[:count], floor).roll_back)
            delays.append(alarm)
    late = f"90 % within {np.quantile(delays, 0.9):.0f}; checked after every decision"
    return [
        Measurement(
            "live reward as promised: rolled back", 100 * float(np.mean(alarms)), "%", "in 5,000 decisions", 1.0
        ),
        Measurement("live reward falls by .20: decisions until rollback", float(np.median(delays)), "", late),
    ]
