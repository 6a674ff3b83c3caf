"""The cells of tau-bench by domain, mode and reading of what helps: each order beside the former constants."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from rich.table import Table

from bench.measure import Measurement
from bench.replay import tau_folds
from bench.replay.tau_folds import COLD, HELPS, PLAN, SAME_TASK, WARM, Domain, Fold
from policy.features import column, comparison_with, features
from policy.orders import ORDERS, mixture

SEEDS = (0, 1, 2)
SERVING = "serving"
COLUMNS = ("words", "fused", "meaning", "telling", "vote", SERVING)
"""Columns of the table: orders; ``serving`` is the order that replay chose."""
FORMER: Mapping[tuple[str, str, str], float] = {
    ("retail", COLD, PLAN): 0.505,
    ("retail", WARM, PLAN): 0.843,
    ("retail", WARM, SAME_TASK): 0.600,
    ("airline", COLD, PLAN): 0.349,
    ("airline", WARM, PLAN): 0.599,
    ("airline", WARM, SAME_TASK): 0.820,
}
"""The same for ``default-4``, the constants before replay, by the code of main:2139678 on these folds; not telecom."""
BELOW = 0.01
"""Most that the serving order may be below the former one in a cell."""


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """The nDCG@4 of each order over the queries of one domain, mode and reading."""

    domain: str
    mode: str
    reading: str
    reached: Sequence[Mapping[str, float]]

    def mean(self, order: str) -> float:
        """Returns the order's mean nDCG@4."""
        return float(np.mean([each[order] for each in self.reached]))

    @property
    def former(self) -> float | None:
        """The mean nDCG@4 of the former constants; None: it is not known."""
        return FORMER.get((self.domain, self.mode, self.reading))


def cells(domains: Mapping[str, Domain]) -> list[Cell]:
    """Returns all cells of the domains."""
    return [cell for name, domain in domains.items() for cell in _cells(name, domain)]


def table(measured: Sequence[Cell]) -> Table:
    """Returns the cells as a table, the former constants in the last column."""
    shown = Table(title="tau-bench, nDCG@4 of each order by what helps")
    for heading in ("cell", "helps", "queries", *COLUMNS, "default-4"):
        shown.add_column(heading, justify="left" if heading in {"cell", "helps"} else "right")
    for cell in measured:
        means = [*(cell.mean(order) for order in COLUMNS), cell.former]
        values = ["-" if mean is None else f"{mean:.3f}" for mean in means]
        shown.add_row(f"{cell.domain} {cell.mode}", cell.reading, str(len(cell.reached)), *values)
    return shown


def aims(measured: Sequence[Cell]) -> list[Measurement]:
    """Returns the distance of the serving order from the former constants in each cell."""
    return [
        Measurement(
            f"{cell.domain} {cell.mode}, {cell.reading}: choice minus default-4",
            cell.mean(SERVING) - former,
            "",
            f"{len(cell.reached)} queries, seeds {SEEDS}",
            -BELOW,
            at_least=True,
        )
        for cell in measured
        if (former := cell.former) is not None
    ]


def _cells(name: str, domain: Domain) -> list[Cell]:
    reached: dict[tuple[str, str], list[Mapping[str, float]]] = {}
    for seed in SEEDS:
        for fold in tau_folds.folds(domain, seed):
            for query in fold.queries:
                for reading, each in _reached(domain, fold, int(query)).items():
                    reached.setdefault((fold.mode, reading), []).append(each)
    return [Cell(name, mode, reading, each) for (mode, reading), each in sorted(reached.items())]


def _reached(domain: Domain, fold: Fold, query: int) -> dict[str, Mapping[str, float]]:
    """Returns the nDCG@4 of each order by each reading under which a case of the bank helps."""
    pool = tau_folds.pool_of(domain, fold, query)
    candidates = tau_folds.candidates_of(domain, fold, pool, query)
    terms = domain.numbers[query].terms
    comparison = comparison_with(terms, candidates, fold.fit)
    mixed = mixture(comparison, fold.fit.weights)
    scores = {name: ORDERS[name](comparison, mixed)[0] for name in COLUMNS if name != SERVING}
    scores[SERVING] = column(features(terms, candidates, fold.fit).features, "order")
    slates = {name: tau_folds.told(pool, scores[name], candidates.failed) for name in COLUMNS}
    return {
        reading: {name: tau_folds.dcg(domain, query, slate, reading) / ideal for name, slate in slates.items()}
        for reading in HELPS
        if (ideal := tau_folds.ideal_dcg(domain, fold, query, reading)) > 0
    }
