"""Honesty of the answer to "did memory help?", on logs of made-up worlds whose truth is known.

The product's own ``decide`` chooses the slates and draws the lots; the logs go through the rows and arrays of the
service (``app.impact.report.seen_in``). Only the rewards of slates are made up.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from app.impact.decisions_seen import DecisionsSeen, seen_in
from bench.measure import Measurement
from policy import features
from policy.decide import DEFAULT, Budget, Trial, decide
from policy.logged import Floats, Ints
from policy.rate import wilson
from policy.reward_difference import RewardDifference
from policy.slate import traits_of

LOGS, DECISIONS = 100, 4_000
UPLIFT = 0.08
MOST_FALSE, LEAST_COVERED = 5.0, 93.0
SECOND = 100
"""The first seed of the worlds with an effect."""
LOOKS = 10
"""Looks at a log as it grows, evenly spaced."""
CANDIDATES, PLACES = 6, 4
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
HARD_EASE, EASY_EASE = 0.3, 0.65
"""Expected rewards of hard and easy queries without memory."""
HARD_BUDGET = 20
"""Exploration budget of hard queries, in budgets of the others; at most 1."""
SPREAD = 0.03
"""Standard deviation of a query's own ease."""
MOST_ASKED = 10
"""Offset of the queries' ranks; the higher, the more evenly queries return."""


@dataclass(frozen=True, slots=True)
class World:
    """A made-up world.

    Attributes:
        uplift: gain in expected reward by a shown slate, in the mean over shown slates.
        queries: number of returning queries, the first ones the most frequent (Zipf); 0: each decision has its own.
        drift: fall of rewards from the first decision to the last, whatever was served.
        hard: share of hard queries, which earn less in any case, and for which the operator explores more.
        turning: the share of hard queries grows from 0 to twice ``hard``, so that time, chance and reward go together.
        mixed: difference in gain between easy and hard queries.
        budget: exploration budget.
        unequal: the budget falls to a fourth half-way.
    """

    name: str
    uplift: float = 0.0
    queries: int = 0
    drift: float = 0.0
    hard: float = 0.3
    turning: bool = False
    mixed: float = 0.0
    budget: float = 0.05
    unequal: bool = False


def worlds(uplift: float) -> list[World]:
    """Returns the worlds, a plain one first."""
    return [
        World("plain", uplift),
        World("queries that come again", uplift, queries=400),
        World("rewards that drift with the hard queries", uplift, drift=0.1, turning=True),
        World("hard queries get fewer cases", uplift, hard=0.6),
        World("unequal chances, budget cut half-way", uplift, budget=0.2, unequal=True),
        World("it helps some and harms others", uplift, mixed=0.15),
        World("all of it at once", uplift, 400, 0.1, 0.4, turning=True, mixed=0.1, budget=0.1, unequal=True),
    ]


def chances(rng: np.random.Generator, budget: float) -> float:
    """Returns the product's chance of an empty slate under this budget."""
    matrix = features.unpacked(features.packed(rng.random((CANDIDATES, len(features.NAMES))).astype(np.float32)))
    for name in ("failed", "proven"):
        matrix[:, features.COLUMN[name]] = 0
    number = np.arange(CANDIDATES, dtype=np.int16)
    decided = decide(
        matrix, traits_of(matrix, number, number, None), PLACES, Trial({DEFAULT: None}, Budget(explore=budget), 0)
    )
    return decided.lottery.chance(())


@dataclass(frozen=True, slots=True, eq=False)
class Log:
    """A log in the estimator's form, with the worth of showing a slate at each decision, weighted by its chance."""

    decisions: DecisionsSeen
    worth: Floats
    naive: float
    """Mean reward of shown slates less that of empty ones: the result of a plain comparison."""


def log_of(world: World, rng: np.random.Generator, decisions: int = DECISIONS) -> Log:
    """Returns one log of the world."""
    at = np.arange(decisions) / decisions
    query = _queries(world.queries, decisions, rng)
    luck, noise = rng.random(int(query.max()) + 1)[query], rng.normal(0, SPREAD, int(query.max()) + 1)[query]
    hard = luck < (2 * world.hard * at if world.turning else world.hard)
    budgets = np.where(world.unequal & (at > 0.5), world.budget / 4, world.budget)  # noqa: PLR2004 - half-way
    empty_chance = _empty_chances(hard, budgets)
    shown = rng.random(decisions) >= empty_chance
    effect = world.uplift + world.mixed * (np.where(hard, 0.0, 1.0) - (~hard).mean())
    ease = np.where(hard, HARD_EASE, EASY_EASE) + noise - world.drift * (at - 0.5)
    reward = rng.random(decisions) < ease + shown * effect
    rows = [
        _Row("", int(group), float(earned), float(chance), BEGAN + timedelta(minutes=minute), not is_shown)
        for minute, (group, earned, chance, is_shown) in enumerate(
            zip(query, reward, np.where(shown, 1 - empty_chance, empty_chance).astype(np.float32), shown, strict=True)
        )
    ]
    naive = reward[shown].mean() - reward[~shown].mean() if (~shown).any() else 0.0
    return Log(seen_in(rows, float(budgets.min())), (1 - empty_chance) * effect, float(naive))


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of ``retrieval.pages.impact.earned``."""

    query: str
    query_group: int | None
    reward: float | None
    slate_propensity: float
    created_at: datetime
    is_empty: bool


def _queries(different: int, decisions: int, rng: np.random.Generator) -> Ints:
    """Returns the query of each decision, among so many; 0: each has its own."""
    if not different:
        return np.arange(decisions)
    often = 1 / (MOST_ASKED + np.arange(different))
    return rng.choice(different, decisions, p=often / often.sum())


def _empty_chances(hard: NDArray[np.bool_], budgets: Floats) -> Floats:
    """Returns the chance of an empty slate of each decision, by the product's own lots."""
    rng, spent = np.random.default_rng(0), np.where(hard, np.minimum(HARD_BUDGET * budgets, 1), budgets)
    chance = np.zeros(len(hard))
    for budget in np.unique(spent):
        chance[spent == budget] = chances(rng, float(budget))
    return chance


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on a log at its end, a claim of help at any look, and the truth."""

    difference: RewardDifference
    claimed: bool
    truth: float
    naive: float

    @property
    def covered(self) -> bool:
        """Returns whether the interval contains the truth; without an interval it counts as covered."""
        low, high = self.difference.low, self.difference.high
        return low is None or high is None or low <= self.truth <= high


def judge(log: Log, looks: int = 1) -> Verdict:
    """Returns the verdict on a log, with looks at so many evenly spaced moments."""
    last = log.decisions.less_empty()
    at = [BEGAN + timedelta(minutes=len(log.worth) * look / looks) for look in range(1, looks)]
    claimed = any(difference.helped is True for difference in (last, *(log.decisions.less_empty(when) for when in at)))
    return Verdict(last, claimed, float(log.worth.mean()), log.naive)


async def impact(home: Path, logs: int = LOGS) -> list[Measurement]:  # noqa: ARG001 - as every benchmark
    """Returns the shares of false claims of help, and of intervals that contain the true effect."""
    rows: list[Measurement] = []
    for number, world in enumerate(worlds(0.0)):
        rows += _false_claims(world, _verdicts(world, number, logs, LOOKS), number)
    for number, world in enumerate(worlds(UPLIFT)):
        rows += _coverage(world, _verdicts(world, SECOND + number, logs), SECOND + number)
    return rows


def _verdicts(world: World, seed: int, logs: int, looks: int = 1) -> list[Verdict]:
    return [judge(log_of(world, rng), looks) for rng in np.random.default_rng(seed).spawn(logs)]


def _false_claims(world: World, verdicts: Sequence[Verdict], seed: int) -> list[Measurement]:
    at_end = sum(each.difference.helped is True for each in verdicts)
    ever = sum(each.claimed for each in verdicts)
    naive = np.mean([each.naive for each in verdicts])
    detail = (
        f"{at_end} of {len(verdicts)} logs of {DECISIONS:,} (seed {seed}), 95 % {_share(at_end, len(verdicts))};"
        f" a plain comparison says {naive:+.2f}"
    )
    looks = f"{ever} of {len(verdicts)} logs, looked at {LOOKS} times"
    return [
        Measurement(f"no effect, {world.name}: said to help", 100 * at_end / len(verdicts), "%", detail, MOST_FALSE),
        Measurement(f"no effect, {world.name}: ever said to", 100 * ever / len(verdicts), "%", looks, MOST_FALSE),
    ]


def _coverage(world: World, verdicts: Sequence[Verdict], seed: int) -> list[Measurement]:
    covered = sum(each.covered for each in verdicts)
    estimates = [(each.difference.estimate, each.difference.low, each.difference.high, each.truth) for each in verdicts]
    known = np.array([row for row in estimates if None not in row], dtype=np.float64).reshape(-1, 4)
    truth, naive = (np.mean([getattr(each, name) for each in verdicts]) for name in ("truth", "naive"))
    helped = sum(each.difference.helped is True for each in verdicts)
    detail = (
        f"{covered} of {len(verdicts)} logs (seed {seed}), 95 % {_share(covered, len(verdicts))}; truth {truth:+.3f},"
        f" estimates off by {(known[:, 0] - known[:, 3]).mean():+.3f} in the mean, mean width"
        f" {(known[:, 2] - known[:, 1]).mean():.2f}; {len(verdicts) - len(known)} without an interval; said to help"
        f" {helped}; a plain comparison says {naive:+.2f}"
    )
    share = 100 * covered / len(verdicts)
    return [Measurement(f"+.08, {world.name}: interval covers it", share, "%", detail, LEAST_COVERED, at_least=True)]


def _share(hits: int, trials: int) -> str:
    low, high = wilson(hits, trials)
    return f"{low:.0%}-{high:.0%}"
