"""Whole trials: the gate looks every night, until it promotes or ends the trial, or the trial is over."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from bench.gate.canary import Canary, Scenario, canary, world
from bench.measure import Measurement
from policy.decide import trial_share
from policy.gate import Contest, judge
from policy.rate import wilson
from policy.verdict import GateOutcome, GateSettings, Verdict

TRIALS = 500
PROMOTED_IF_NO_BETTER, PROMOTED_IF_WINNER, SOON = 2.0, 90.0, 1_000
SETTINGS = GateSettings(resamples=50)
"""Settings of the gate; few resamples, because the verdict reads none."""
NIGHTS = [night for night in SETTINGS.spending.looks() if night >= SETTINGS.min_decisions]
UPLIFT, HARM = 0.08, -0.10
CANARY = 0.25
"""Share of decisions that get another slate by a trial; as a profile may set it, since trials are off at first."""
NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class Ended:
    """The outcome of a trial, and its number of decisions."""

    outcome: GateOutcome
    at: int

    @property
    def promoted(self) -> bool:
        """Returns whether the candidate was promoted."""
        return self.outcome == "promote"


def run(seed: int, trials: int = TRIALS) -> list[Measurement]:
    """Returns the outcomes of so many trials of each kind, over their whole life."""
    return [*no_better(seed, trials), *harmful(seed, trials), *winners(seed, trials)]


def no_better(seed: int, trials: int = TRIALS) -> list[Measurement]:
    """Returns the share of candidates no better than the default that are ever promoted."""
    even = as_served(uplift=0.0)
    kinds = {
        "equal in value": even,
        "equal in value, arm drawn per query": replace(even, sticky=True),
        "permuted rewards": as_served(uplift=UPLIFT, permuted=True),
    }
    return _never(kinds, seed, trials, PROMOTED_IF_NO_BETTER)


def harmful(seed: int, trials: int = TRIALS) -> list[Measurement]:
    """Returns the share of harmful candidates with a good forecast that are ever promoted."""
    plain = as_served(uplift=HARM, claimed=UPLIFT)
    kinds = {f"harmful {HARM:+.2f}": plain, f"harmful {HARM:+.2f}, arm drawn per query": replace(plain, sticky=True)}
    return _never(kinds, seed + 10, trials, 0.0)


def _never(kinds: Mapping[str, Scenario], seed: int, trials: int, aim: float) -> list[Measurement]:
    rows: list[Measurement] = []
    for number, (name, scenario) in enumerate(kinds.items()):
        ended = lives(scenario, seed + number, trials)
        rows += [promoted_row(f"{name}: ever promoted", ended, aim), futile_row(name, ended)]
    return rows


def winners(seed: int, trials: int = TRIALS) -> list[Measurement]:
    """Returns the share and time of promotion of winners, beside a gate with one look."""
    name, plain = f"winner {UPLIFT:+.2f}", as_served(uplift=UPLIFT)
    single = once(replace(plain, share=CANARY), seed + 20, trials)
    kinds = {
        name: plain,
        f"{name}, arm drawn per query": replace(plain, sticky=True),
        f"{name}, slates differ on 35 %": as_served(uplift=UPLIFT, differ=0.35),
        f"{name}, slates differ on 100 %": as_served(uplift=UPLIFT, differ=1.0),
    }
    rows = []
    for number, (kind, scenario) in enumerate(kinds.items()):
        ended = lives(scenario, seed + 20 + number, trials)
        rows += _winner(kind, ended, scenario, single if number == 0 else None)
    rows.append(
        Measurement(f"{name}: by {SOON:,} decisions at the efficiency bound", _possible(plain, seed), "%", _BOUND)
    )
    return rows


_BOUND = "one look at the level of a whole trial, by the best unbiased estimator that can be"


def _possible(scenario: Scenario, seed: int, worlds: int = 50) -> float:
    """Returns the best chance that a gate with one look can have, in percent."""
    bound = NORMAL.inv_cdf(1 - SETTINGS.spending.error)
    at_once = replace(scenario, decisions=SOON)
    errors = [world(at_once, rng).least_error(at_once) for rng in np.random.default_rng(seed).spawn(worlds)]
    return 100 * float(np.mean([NORMAL.cdf(scenario.uplift / error - bound) for error in errors]))


def as_served(*, uplift: float, differ: float = 0.65, permuted: bool = False, claimed: float | None = None) -> Scenario:
    """Returns a trial as the product runs it, at its longest, with lots drawn where the slates differ."""
    share = trial_share(CANARY, differ)
    return Scenario(uplift, max(NIGHTS), share, differ, permuted=permuted, claimed=claimed)


def lives(scenario: Scenario, seed: int, trials: int) -> list[Ended]:
    """Returns the outcomes of independent trials of one scenario."""
    return [lived(canary(scenario, rng), seed) for rng in np.random.default_rng(seed).spawn(trials)]


def lived(log: Canary, seed: int) -> Ended:
    """Returns the outcome of a trial with a look every night."""
    for night in NIGHTS:
        outcome = _verdict(log, night, SETTINGS, seed).outcome
        if outcome != "insufficient evidence":
            return Ended(outcome, night)
    return Ended("keep", NIGHTS[-1])


def once(scenario: Scenario, seed: int, trials: int) -> list[Ended]:
    """Returns the outcomes of trials that the first night with enough evidence decides, at a level of 99 %."""
    return [_once(canary(scenario, rng), seed) for rng in np.random.default_rng(seed).spawn(trials)]


def _once(log: Canary, seed: int) -> Ended:
    for night in NIGHTS:
        verdict = _verdict(log, night, replace(SETTINGS, resamples=1_000), seed)
        if verdict.calibration is None:
            continue
        failed = {check.name for check in verdict.checks if not check.passed}
        trusted = not failed & {"calibration", "no segment worse"}
        better = verdict.estimates["candidate - default"].low > 0
        return Ended("promote" if trusted and better else "keep", night)
    return Ended("keep", NIGHTS[-1])


def _verdict(log: Canary, night: int, settings: GateSettings, seed: int) -> Verdict:
    rows = np.arange(len(log.logged.reward)) < night
    contest = Contest(*(target.take(rows) for target in log.contest.named().values()))
    return judge(log.logged.take(rows), contest, settings, seed)


def promoted_row(name: str, ended: Sequence[Ended], aim: float) -> Measurement:
    """Returns the share of trials that promoted their candidate, in percent."""
    promoted = sum(each.promoted for each in ended)
    low, high = wilson(promoted, len(ended))
    detail = f"{promoted} of {len(ended)} trials, 95 % {low:.1%}-{high:.1%}; looked at every 50, from 1,000 every 250"
    return Measurement(name, 100 * promoted / len(ended), "%", detail, aim)


def futile_row(name: str, ended: Sequence[Ended]) -> Measurement:
    """Returns the share of trials that ended as futile, in percent, with the outcomes of the others."""
    futile = [each.at for each in ended if each.outcome == "futile"]
    others = {each.outcome for each in ended} - {"futile"}
    rest = ", ".join(f"{outcome} {sum(each.outcome == outcome for each in ended)}" for outcome in sorted(others))
    when = f"at the median after {np.median([each.at for each in ended]):.0f} decisions, however they ended"
    return Measurement(
        f"{name}: ended as futile", 100 * len(futile) / len(ended), "%", f"{when}; {rest or 'no others'}"
    )


def _winner(name: str, ended: Sequence[Ended], scenario: Scenario, single: Sequence[Ended] | None) -> list[Measurement]:
    """Returns the chance by SOON decisions of all, by SOON of the candidate's own, and the median time."""
    rows = []
    for what, limit in ((f"{SOON:,} decisions", SOON), (f"{SOON:,} of its own", SOON / scenario.share)):
        soon = sum(each.promoted and each.at <= limit for each in ended)
        low, high = wilson(soon, len(ended))
        detail = (
            f"{soon} of {len(ended)} trials, 95 % {low:.0%}-{high:.0%}; {scenario.share:.0%} of decisions are its own"
        )
        share = 100 * soon / len(ended)
        rows.append(Measurement(f"{name}: promoted by {what}", share, "%", detail, PROMOTED_IF_WINNER, at_least=True))
    futile = sum(each.outcome == "futile" for each in ended)
    detail = f"{_times(ended)}; futile {futile} of {len(ended)}"
    aim = None if single is None else _median(single)
    rows.append(Measurement(f"{name}: decisions until promotion", _median(ended), "", detail, aim))
    if single is not None:
        detail = f"{_times(single)}; the first night with enough evidence decided, canary of {100 * CANARY:.0f} %"
        rows.append(Measurement(f"{name}: the same with a single look, as before", _median(single), "", detail))
    return rows


def _median(ended: Sequence[Ended]) -> float:
    """Returns the median time to promotion of the promoted candidates."""
    return float(np.median([each.at for each in ended if each.promoted] or np.inf))


def _times(ended: Sequence[Ended]) -> str:
    of_all = float(np.median([each.at if each.promoted else np.inf for each in ended]))
    promoted = sum(each.promoted for each in ended)
    return (
        f"median of the {promoted} promoted of {len(ended)}; of all {'never' if np.isinf(of_all) else f'{of_all:.0f}'}"
    )
