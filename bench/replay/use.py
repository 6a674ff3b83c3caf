"""The order after thousands of decisions whose outcomes went into the records: use alone must not make it worse.

The queries of the decisions are runs of the bank itself, drawn by lot, each without its own run; the agent follows the
first case of the slate, and its reward, 0 or 1, is drawn by how much that case helps. The outcome is shared among the
slate as the service shares it. The fold's own queries, which are never asked meanwhile, say how good the order is.
Where the rewards are drawn by lot instead, nothing is to be learned, and the order must not get worse either.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from app.demo.compare import absolute, bootstrap
from bench.measure import Measurement
from bench.replay import tau_folds
from bench.replay.tau_folds import HELPS, PLAN, Domain, Fold, Ints
from policy.agreement import agreement
from policy.examples import shared_credit
from policy.features import Candidates, Features, column, features, record

DOMAINS = ("retail", "airline")
"""Domains with customers of their own; in telecom's runs the customer is the task."""
SEED = 0
DECISIONS = (0, 500, 2_000, 5_000)
"""Numbers of decisions after which the order is looked at."""
FALL = 0.01
"""Most that a curve may fall below its beginning."""
EARNED, BY_LOT = "earned", "by lot"


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """The nDCG@4 of one domain's queries, (len(decisions), queries), by a reading of what helps."""

    name: str
    reading: str
    rewards: str
    decisions: Sequence[int]
    reached: NDArray[np.float32]


class Served:
    """The bank of a fold, whose cases have records of their reuse.

    Attributes:
        count, reward: (runs,), each run's shares of decisions, and of their rewards.
    """

    def __init__(self, domain: Domain, fold: Fold) -> None:
        self._domain, self._fold = domain, fold
        self._asked: dict[int, tuple[Ints, Candidates]] = {}
        self.count, self.reward = (np.zeros(len(domain.runs)) for _ in range(2))

    def slate(self, query: int) -> Ints:
        """Returns the first four runs for a query, best first."""
        pool, ranked = self.ranked(query)
        return tau_folds.told(pool, column(ranked, "order"), column(ranked, "failed") > 0)

    def ranked(self, query: int) -> tuple[Ints, Features]:
        """Returns the pool of a query, and the features of its runs with their records so far."""
        if query not in self._asked:
            pool = tau_folds.pool_of(self._domain, self._fold, query)
            self._asked[query] = pool, tau_folds.candidates_of(self._domain, self._fold, pool, query)
        pool, candidates = self._asked[query]
        known = replace(candidates, record=record(self.count[pool], self.reward[pool]))
        return pool, features(self._domain.numbers[query].terms, known, self._fold.fit).features

    def decide(self, query: int, rewards: str, random: np.random.Generator) -> None:
        """Tells a slate, follows its first case, and shares the reward that is drawn."""
        slate = self.slate(query)
        helped = HELPS[PLAN](self._domain, query, int(slate[0])) if rewards == EARNED else 0.5
        agreed = agreement([self._domain.numbers[run].moves for run in slate])[:1]
        filled = np.ones_like(agreed, dtype=np.bool_)
        share = shared_credit(filled, filled, np.zeros(1, np.bool_), agreed)[0]
        self.count[slate] += share
        self.reward[slate] += share * (random.random() < helped)


def curves(domains: Mapping[str, Domain], decisions: Sequence[int] = DECISIONS) -> list[Curve]:
    """Returns the curves of each domain, mode and reading for rewards that are earned, and for those by lot."""
    return [curve for name in DOMAINS if name in domains for curve in _curves(name, domains[name], decisions)]


def _curves(name: str, domain: Domain, decisions: Sequence[int]) -> Iterator[Curve]:
    parts: dict[tuple[str, str, str], list[NDArray[np.float32]]] = {}
    for fold in tau_folds.folds(domain, SEED):
        for rewards in (EARNED, BY_LOT):
            for reading, reached in _reached(domain, fold, rewards, decisions).items():
                parts.setdefault((rewards, fold.mode, reading), []).append(reached)
    for (rewards, mode, reading), of_folds in sorted(parts.items()):
        yield Curve(f"{name} {mode}", reading, rewards, decisions, np.concatenate(of_folds, axis=1))


def _reached(domain: Domain, fold: Fold, rewards: str, decisions: Sequence[int]) -> dict[str, NDArray[np.float32]]:
    """Returns the nDCG@4 of a fold's queries, (len(decisions), queries), by each reading under which a run helps."""
    served, random = Served(domain, fold), np.random.default_rng(SEED)
    asking = np.setdiff1d(fold.bank, fold.queries)
    ideal = {
        reading: {query: dcg for query in fold.queries if (dcg := tau_folds.ideal_dcg(domain, fold, query, reading))}
        for reading in HELPS
    }
    rows: dict[str, list[list[float]]] = {reading: [] for reading, by_query in ideal.items() if by_query}
    for more in np.diff(decisions, prepend=0):
        for query in random.choice(asking, more):
            served.decide(query, rewards, random)
        slates = {query: served.slate(query) for query in fold.queries}
        for reading, row in rows.items():
            row.append(
                [tau_folds.dcg(domain, query, slates[query], reading) / dcg for query, dcg in ideal[reading].items()]
            )
    return {reading: np.array(row, dtype=np.float32) for reading, row in rows.items()}


def table(measured: Sequence[Curve]) -> Table:
    """Returns the curves as a table."""
    shown = Table(title="nDCG@4 after so many decisions with their outcomes, nothing trained")
    for heading in ("cell", "helps", "rewards", *(f"{decisions:,}" for decisions in DECISIONS)):
        shown.add_column(heading, justify="left" if heading in {"cell", "helps", "rewards"} else "right")
    for curve in measured:
        means = (f"{value:.3f}" for value in curve.reached.mean(axis=1))
        shown.add_row(curve.name, curve.reading, curve.rewards, *means)
    return shown


def aims(measured: Sequence[Curve]) -> list[Measurement]:
    """Returns each curve's least change from its beginning."""
    return [_least_change(curve) for curve in measured]


def _least_change(curve: Curve) -> Measurement:
    before = curve.reached[0]
    changes = {
        after: bootstrap([[pair] for pair in zip(before, later, strict=True)], absolute)
        for after, later in zip(curve.decisions[1:], curve.reached[1:], strict=True)
    }
    after, least = min(changes.items(), key=lambda change: change[1].value)
    return Measurement(
        f"use, {curve.name}, {curve.reading}, rewards {curve.rewards}: least change",
        least.value,
        "",
        f"after {after:,} decisions, {len(before)} queries",
        -FALL,
        at_least=True,
        interval=(least.low, least.high),
    )
