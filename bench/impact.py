"""Whether "did memory help?" is answered honestly: logs of made-up worlds whose truth is known.

Slates are decided and their lots drawn by the product's own ``decide``; the logs go through the same rows and arrays as
those of the service (``app.impact.impact.seen_in``). What is made up is what a slate earns.
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
from policy.impact import Difference
from policy.logged import Floats, Ints
from policy.rate import wilson
from policy.slate import field_of

LOGS, DECISIONS = 100, 4_000
UPLIFT = 0.08
MOST_FALSE, LEAST_COVERED = 5.0, 93.0
SECOND = 100
"""The first seed of the worlds with an effect."""
LOOKS = 10
"""At a log as it grows, evenly spaced: as somebody would who looks every few days."""
CANDIDATES, PLACES = 6, 4
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
HARD_EASE, EASY_EASE = 0.3, 0.65
"""Rewards to expect of the two kinds of queries without memory."""
SPREAD = 0.03
"""Standard deviation of a query's own ease, its luck."""
MOST_ASKED = 10
"""The higher, the more evenly queries come again."""


@dataclass(frozen=True, slots=True)
class World:
    """What is made up.

    Attributes:
        uplift: what telling a slate adds to the reward to expect, in the mean over told slates.
        queries: that come again and again, the first ones the most often (Zipf); 0: each decision has its own.
        drift: by which rewards fall from the first decision to the last, whatever was served.
        hard: share of queries whose slates are in doubt, and so left empty more often, which earn less in any case.
        turning: the share of hard queries grows from none to twice ``hard``, so that time, doubt and reward go with it.
        mixed: telling helps on easy queries by so much more than on hard ones.
        budget: of exploration; unequal: it changes half-way to a fourth of it.
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


def chances(rng: np.random.Generator, budget: float, *, doubted: bool) -> float:
    """Returns the chance with which the product leaves the slate of such a query empty."""
    seen = features.unpacked(features.packed(rng.random((CANDIDATES, len(features.NAMES))).astype(np.float32)))
    for name, value in {"failed": float(doubted), "reward": float(not doubted), "near_count": 0.0}.items():
        seen[:, features.COLUMN[name]] = value
    number = np.arange(CANDIDATES, dtype=np.int16)
    decided = decide(
        seen, field_of(seen, number, number, None), PLACES, Trial({DEFAULT: None}, Budget(explore=budget), 0)
    )
    return decided.lottery.chance(())


@dataclass(frozen=True, slots=True, eq=False)
class Log:
    """A log as the estimator takes it, and what telling is worth at each decision, by its chance of being told."""

    seen: DecisionsSeen
    worth: Floats
    naive: float
    """Mean reward of told slates less that of empty ones: what a plain comparison would say."""


def log_of(world: World, rng: np.random.Generator, decisions: int = DECISIONS) -> Log:
    """Returns one log of the world."""
    at = np.arange(decisions) / decisions
    query = _queries(world.queries, decisions, rng)
    luck, noise = rng.random(int(query.max()) + 1)[query], rng.normal(0, SPREAD, int(query.max()) + 1)[query]
    hard = luck < (2 * world.hard * at if world.turning else world.hard)
    budgets = np.where(world.unequal & (at > 0.5), world.budget / 4, world.budget)  # noqa: PLR2004 - half-way
    empty_chance = _empty_chances(hard, budgets)
    told = rng.random(decisions) >= empty_chance
    effect = world.uplift + world.mixed * (np.where(hard, 0.0, 1.0) - (~hard).mean())
    ease = np.where(hard, HARD_EASE, EASY_EASE) + noise - world.drift * (at - 0.5)
    reward = rng.random(decisions) < ease + told * effect
    rows = [
        _Row("", int(group), float(earned), float(chance), BEGAN + timedelta(minutes=minute), not shown)
        for minute, (group, earned, chance, shown) in enumerate(
            zip(query, reward, np.where(told, 1 - empty_chance, empty_chance).astype(np.float32), told, strict=True)
        )
    ]
    naive = reward[told].mean() - reward[~told].mean() if (~told).any() else 0.0
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
    """Returns which query each decision has; 0: each has its own."""
    if not different:
        return np.arange(decisions)
    often = 1 / (MOST_ASKED + np.arange(different))
    return rng.choice(different, decisions, p=often / often.sum())


def _empty_chances(hard: NDArray[np.bool_], budgets: Floats) -> Floats:
    """Returns the chance of an empty slate of each decision, by the product's own lots."""
    rng, found = np.random.default_rng(0), np.zeros(len(hard))
    for budget in np.unique(budgets):
        for doubted in (False, True):
            found[(budgets == budget) & (hard == doubted)] = chances(rng, float(budget), doubted=doubted)
    return found


@dataclass(frozen=True, slots=True)
class Told:
    """What was said of a log at its end, at which looks it was said to help, and what is true."""

    said: Difference
    claimed: bool
    truth: float
    naive: float

    @property
    def covered(self) -> bool:
        """Whether the truth lies in the interval; one that cannot be told has none, and misses nothing."""
        low, high = self.said.low, self.said.high
        return low is None or high is None or low <= self.truth <= high


def tell(log: Log, looks: int = 1) -> Told:
    """Returns what is said of a log, and whether help was claimed at any of so many looks, evenly spaced."""
    last = log.seen.less_empty()
    at = [BEGAN + timedelta(minutes=len(log.worth) * look / looks) for look in range(1, looks)]
    claimed = any(said.helped is True for said in (last, *(log.seen.less_empty(when) for when in at)))
    return Told(last, claimed, float(log.worth.mean()), log.naive)


async def impact(home: Path, logs: int = LOGS) -> list[Measurement]:  # noqa: ARG001 - as every benchmark
    """Returns how often help is claimed where there is none, and how often the interval covers what there is."""
    found = []
    for number, world in enumerate(worlds(0.0)):
        found += _false_claims(world, _told_of(world, number, logs, LOOKS), number)
    for number, world in enumerate(worlds(UPLIFT)):
        found += _coverage(world, _told_of(world, SECOND + number, logs), SECOND + number)
    return found


def _told_of(world: World, seed: int, logs: int, looks: int = 1) -> list[Told]:
    return [tell(log_of(world, rng), looks) for rng in np.random.default_rng(seed).spawn(logs)]


def _false_claims(world: World, told: Sequence[Told], seed: int) -> list[Measurement]:
    at_end = sum(each.said.helped is True for each in told)
    ever = sum(each.claimed for each in told)
    naive = np.mean([each.naive for each in told])
    detail = (
        f"{at_end} of {len(told)} logs of {DECISIONS:,} (seed {seed}), 95 % {_share(at_end, len(told))};"
        f" a plain comparison says {naive:+.2f}"
    )
    looks = f"{ever} of {len(told)} logs, looked at {LOOKS} times"
    return [
        Measurement(f"no effect, {world.name}: said to help", 100 * at_end / len(told), "%", detail, MOST_FALSE),
        Measurement(f"no effect, {world.name}: ever said to", 100 * ever / len(told), "%", looks, MOST_FALSE),
    ]


def _coverage(world: World, told: Sequence[Told], seed: int) -> list[Measurement]:
    covered = sum(each.covered for each in told)
    said = [(each.said.estimate, each.said.low, each.said.high, each.truth) for each in told]
    known = np.array([row for row in said if None not in row], dtype=np.float64).reshape(-1, 4)
    truth, naive = (np.mean([getattr(each, name) for each in told]) for name in ("truth", "naive"))
    helped = sum(each.said.helped is True for each in told)
    detail = (
        f"{covered} of {len(told)} logs (seed {seed}), 95 % {_share(covered, len(told))}; truth {truth:+.3f}, estimates"
        f" off by {(known[:, 0] - known[:, 3]).mean():+.3f} in the mean, mean width"
        f" {(known[:, 2] - known[:, 1]).mean():.2f}; {len(told) - len(known)} without an interval; said to help"
        f" {helped}; a plain comparison says {naive:+.2f}"
    )
    share = 100 * covered / len(told)
    return [Measurement(f"+.08, {world.name}: interval covers it", share, "%", detail, LEAST_COVERED, at_least=True)]


def _share(hits: int, trials: int) -> str:
    low, high = wilson(hits, trials)
    return f"{low:.0%}-{high:.0%}"
