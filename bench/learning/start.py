"""Benchmark 7: the order before anything is learned, by three readings, beside the rules that anyone could write down.

What a case is worth is read as the agreement of plans, as the same task solved, and as the success of an agent that
acts on what it is shown (``loops``). All queries count. Intervals cluster by user; nothing is trained.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from app import postgres
from app.demo.world import EnvironmentMissing
from bench.learning import left_out, loops
from bench.learning.asked import CONSENSUS, RRF, SUCCESSES, Asked, Hidden
from bench.learning.loops import NOTHING, SERVED
from bench.learning.scores import Scores, by_user, resampled
from bench.learning.worth import Reading
from bench.measure import Measurement
from policy import default
from policy.decide import score
from policy.features import Features
from policy.logged import Floats
from retrieval.ports import Embedder

FORMER, FORMER_START = "default-3", "default-3's factory start"
SEEDS = (0,)
COLD, WARM = 0.08, 0.05
"""Aims: how far the served default is above the one before, over the domains."""

Scored = Callable[[Features], Floats]


def served(seen: Features) -> Floats:
    """Returns what the untrained default orders by."""
    return np.asarray(score(None, seen).total, np.float64)


def former(seen: Features) -> Floats:
    """Returns what the default before ordered by: RRF times the expected reward."""
    return np.asarray(default.log_rrf(seen) + default.log_posterior(seen), np.float64)


def former_start(seen: Features) -> Floats:
    """Returns where training began then: with the agreement of plans in the place of most of the RRF."""
    agreed = np.log(default.counted(seen, "agreement") + 0.02)
    return np.asarray(former(seen) + agreed - 0.8 * default.log_rrf(seen))


ARMS: Mapping[str, Scored] = {FORMER: former, FORMER_START: former_start, SERVED: served}


@dataclass(frozen=True, slots=True)
class Cell:
    """One column of the table: a domain's queries of one mode, by one reading, or with their plans hidden."""

    domain: str
    mode: str
    reading: Reading
    hidden: Hidden | None = None

    @property
    def name(self) -> str:
        """What the table calls it."""
        hidden = f", plans say nothing ({self.hidden.value})" if self.hidden else ""
        return f"start {self.domain} {self.mode}, {self.reading.value}{hidden}"


@dataclass(slots=True)
class Table:
    """What each arm reached, by cell."""

    cells: dict[Cell, Scores] = field(default_factory=dict)
    weighed: dict[left_out.Cell, Scores] = field(default_factory=dict)
    """The same by other weights of the default, and by the rules that these are compared with."""
    useless: dict[Cell, int] = field(default_factory=dict)
    """Queries of which no case of the bank is of any use: left out, for no order could help them."""

    def add(self, domain: str, mode: str, asked: Asked) -> None:
        """Adds one query."""
        self._add(domain, mode, None, asked)
        self._weigh(domain, mode, asked)
        for hidden in Hidden:
            self._add(domain, mode, hidden, asked.without_plans(hidden))

    def _add(self, domain: str, mode: str, hidden: Hidden | None, asked: Asked) -> None:
        slates = {arm: np.array(asked.slate(scored(asked.seen)), np.int64) for arm, scored in ARMS.items()}
        for reading, worth in asked.worth.items():
            cell = Cell(domain, mode, reading, hidden)
            if worth.ideal > 0:
                fixed = {name: worth.fixed[name] for name in (RRF, SUCCESSES, CONSENSUS)}
                reached = {arm: worth.ndcg(slate) for arm, slate in slates.items()}
                self.cells.setdefault(cell, Scores()).add(asked.user, fixed | reached)
            else:
                self.useless[cell] = self.useless.get(cell, 0) + 1

    def _weigh(self, domain: str, mode: str, asked: Asked) -> None:
        before = np.array(asked.slate(former(asked.seen)), np.int64)
        slates = {str(weights): asked.slate(default.scores(asked.seen, weights)) for weights in left_out.GRID}
        for reading, worth in asked.worth.items():
            if worth.ideal > 0:
                reached = {name: worth.ndcg(np.array(slate, np.int64)) for name, slate in slates.items()}
                known = {SUCCESSES: worth.fixed[SUCCESSES], FORMER: worth.ndcg(before)}
                self.weighed.setdefault((domain, mode, reading), Scores()).add(asked.user, known | reached)

    def out_of_sample(self) -> Iterator[Measurement]:
        """Yields how weights that were chosen without a domain stand on it to the default before and to the rule."""
        for left, weights in left_out.choices(self.weighed, SUCCESSES):
            for (domain, mode, reading), scores in self.weighed.items():
                for other in (FORMER, SUCCESSES) if domain == left else ():
                    change = scores.column(str(weights)) - scores.column(other)
                    name = f"start {domain} {mode}, {reading.value}: weights chosen on the other domains - {other}"
                    detail = f"rrf {weights.rrf:g}, returned {weights.returned:g}; paired"
                    interval = by_user(change, scores.users)
                    yield Measurement(name, float(change.mean()), "", detail, interval=interval)

    def rows(self) -> Iterator[Measurement]:
        """Yields the arms of every cell, and how the served default stands to the others."""
        for cell, scores in self.cells.items():
            for arm in scores.by_arm if cell.hidden is None else ():
                yield self._row(cell, arm, scores.column(arm))
            for other in (SUCCESSES, CONSENSUS, FORMER) if cell.hidden is None else (SUCCESSES,):
                change = scores.column(SERVED) - scores.column(other)
                yield self._row(cell, f"{SERVED} - {other}", change, aim=None if other == FORMER else 0.0)

    def _row(self, cell: Cell, what: str, values: Floats, aim: float | None = None) -> Measurement:
        users = self.cells[cell].users
        detail = (
            f"nDCG@4, {len(values)} queries of {len(set(users))} users, {self.useless.get(cell, 0)} without any use"
        )
        interval = by_user(values, users)
        # not worse within the noise: the interval's upper end is what an aim of 0 is held against
        reached = interval[1] if aim is not None else float(values.mean())
        if aim is not None:
            detail = f"paired, at best; {values.mean():+.3f}; {detail}"
        return Measurement(f"{cell.name}: {what}", reached, "", detail, aim, at_least=True, interval=interval)

    def averages(self) -> Iterator[Measurement]:
        """Yields how far the served default is above the one before, over the domains, each counting the same."""
        for mode, aim in (("cold", COLD), ("warm", WARM)):
            for reading in Reading:
                cells = [cell for cell in self.cells if (cell.mode, cell.reading, cell.hidden) == (mode, reading, None)]
                if cells:
                    yield self._average(cells, aim if reading is Reading.AGREEMENT else None)

    def _average(self, cells: Sequence[Cell], aim: float | None) -> Measurement:
        changes = [self.cells[cell].column(SERVED) - self.cells[cell].column(FORMER) for cell in cells]
        users = [self.cells[cell].users for cell in cells]
        draws = np.mean(
            [resampled(change, whose, n) for n, (change, whose) in enumerate(zip(changes, users, strict=True))], axis=0
        )
        low, high = np.quantile(draws, [0.025, 0.975])
        name = f"start all domains {cells[0].mode}, {cells[0].reading.value}: {SERVED} - {FORMER}"
        detail = "mean of " + ", ".join(cell.domain for cell in cells)
        value = float(np.mean([change.mean() for change in changes]))
        return Measurement(name, value, "", detail, aim, at_least=True, interval=(float(low), float(high)))


def measured(domains: Mapping[str, Iterable[tuple[str, Asked]]]) -> list[Measurement]:
    """Returns the table of the first two readings."""
    table = Table()
    for name, queries in domains.items():
        for mode, asked in queries:
            table.add(name, mode, asked)
    return [*table.rows(), *table.averages(), *table.out_of_sample()]


async def closed_loops(embedder: Embedder, say: Callable[[str], object]) -> list[Measurement]:
    """Returns the third reading: the share of tasks that a scripted agent wins with each order."""
    rows: list[Measurement] = []
    arms: Mapping[str, loops.Rule | None] = {
        **loops.RULES,
        FORMER: lambda seen: np.exp(former(seen.features)),
        SERVED: None,
    }
    with TemporaryDirectory(prefix="casebank-bench-", ignore_cleanup_errors=True) as folder:
        try:
            dsn = postgres.start(Path(folder)).url("postgres")
            for adapter in loops.adapters(dsn):
                say(f"closed loop: {adapter.name}")
                try:
                    found = await loops.play_all(adapter, embedder, arms)
                except EnvironmentMissing as missing:
                    rows.append(Measurement(f"start {adapter.name}: SKIPPED", float("nan"), "", str(missing)))
                    continue
                for bank, results in found.items():
                    rows += _loop_rows(f"start {adapter.name}, {bank}", results)
        finally:
            postgres.release(Path(folder))
    return rows


def _loop_rows(name: str, results: loops.Results) -> Iterator[Measurement]:
    tasks = [each.task for each in results[NOTHING]]
    won = {arm: np.array([float(each.success) for each in played]) for arm, played in results.items()}
    for arm, column in won.items():
        steps = np.mean([each.steps for each in results[arm]])
        detail = f"success of the agent, {len(tasks)} tasks, {steps:.1f} steps a task; a failure counts the budget"
        yield Measurement(f"{name}: {arm}", float(column.mean()), "", detail, interval=by_user(column, tasks))
    for other in (SUCCESSES, CONSENSUS, FORMER):
        change = won[SERVED] - won[other]
        low, high = by_user(change, tasks)
        detail = f"paired by task, at best; {change.mean():+.3f}"
        yield Measurement(f"{name}: {SERVED} - {other}", high, "", detail, 0.0, at_least=True, interval=(low, high))
