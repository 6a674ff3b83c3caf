"""What the demo found: numbers, a table and a plot."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field

from rich.console import Console
from rich.table import Table

PARTS = 10
EXPLANATION = (
    "A scripted operator, not an LLM: it knows a fixed list of generic repairs and tries them one by one. Every error "
    "and success is Postgres's own. A step is one SQL statement, one look at the catalog or one check of the goal; "
    "asking memory is not a step: its price is in tokens and milliseconds. First try: the first attempt reached the "
    "goal, which cannot happen without memory, since every task starts from a statement that fails."
)


@dataclass(frozen=True)
class TaskRecord:
    """One task in one arm."""

    task_id: str
    family: str
    task: str
    steps: int
    success: bool
    first_try: bool
    relevant: bool  # a case of the same family that succeeded was in the bank beforehand
    reused: bool  # a remembered plan was tried
    slate: int  # cases in the slate
    slate_relevant: int  # of these, cases of the same family
    tokens: int
    latency_ms: float | None
    wall_ms: float


@dataclass(frozen=True, slots=True)
class Totals:
    """One arm's whole stream in numbers; rates from 0 to 1, None where there was nothing to measure."""

    tasks: int
    steps: int
    steps_per_task: float
    success: float
    first_try: float
    relevant_tasks: int
    relevant_success: float | None
    relevant_steps_per_task: float | None
    slate_precision: float | None
    """Share of the cases on the slates that came from the task's own family."""
    reused: float
    tokens: int
    retrieve_p50_ms: float | None
    wall_s: float
    memory_errors: int

    @property
    def headline(self) -> tuple[float, float, float]:
        """Steps a task, success and first tries: the columns of the table."""
        return self.steps_per_task, self.success, self.first_try


@dataclass(frozen=True)
class Arm:
    """All records of one arm, in the order of the stream."""

    name: str
    records: Sequence[TaskRecord]
    errors: Sequence[str] = ()

    def per_part(self, value: Callable[[TaskRecord], float]) -> list[float]:
        """The mean of `value` in each tenth of the stream."""
        size = len(self.records)
        parts = [self.records[size * i // PARTS : size * (i + 1) // PARTS] for i in range(PARTS)]
        return [round(_mean(part, value), 3) for part in parts if part]

    def totals(self) -> Totals:
        """Means, sums and medians over the whole stream."""
        relevant = [record for record in self.records if record.relevant]
        latencies = [record.latency_ms for record in self.records if record.latency_ms is not None]
        shown = sum(record.slate for record in self.records)
        return Totals(
            tasks=len(self.records),
            steps=sum(record.steps for record in self.records),
            steps_per_task=round(_mean(self.records, _steps), 3),
            success=round(_mean(self.records, _success), 3),
            first_try=round(_mean(self.records, _first_try), 3),
            relevant_tasks=len(relevant),
            relevant_success=round(_mean(relevant, _success), 3) if relevant else None,
            relevant_steps_per_task=round(_mean(relevant, _steps), 3) if relevant else None,
            slate_precision=round(sum(r.slate_relevant for r in self.records) / shown, 3) if shown else None,
            reused=round(_mean(self.records, lambda record: record.reused), 3),
            tokens=sum(record.tokens for record in self.records),
            retrieve_p50_ms=round(statistics.median(latencies), 2) if latencies else None,
            wall_s=round(sum(record.wall_ms for record in self.records) / 1000, 2),
            memory_errors=len(self.errors),
        )


@dataclass(frozen=True)
class DemoReport:
    """Both arms over the same stream, and where the files went."""

    seed: int
    budget: int
    without: Arm
    with_memory: Arm
    files: dict[str, str] = field(default_factory=dict)

    @property
    def steps_change(self) -> float:
        """Steps with memory against without: -0.5 is half as many."""
        return _mean(self.with_memory.records, _steps) / _mean(self.without.records, _steps) - 1

    def story(self) -> list[tuple[str, int, int]]:
        """The first two tasks that leave out a column's type: text, steps without memory, steps with it."""
        pairs = zip(self.without.records, self.with_memory.records, strict=True)
        return [(a.task, a.steps, b.steps) for a, b in pairs if a.task_id in ("missing_type-0", "missing_type-1")]

    def as_dict(self) -> dict[str, object]:
        """Every number of the report, ready for JSON."""
        return {
            "operator": "scripted operator, not an LLM",
            "explanation": EXPLANATION,
            "seed": self.seed,
            "budget": self.budget,
            "steps_change": round(self.steps_change, 4),
            "story": [[text, before, after] for text, before, after in self.story()],
            "arms": {arm.name: _arm_dict(arm) for arm in (self.without, self.with_memory)},
        }


def print_report(report: DemoReport, console: Console) -> None:
    """Prints the table, the totals and what they mean."""
    console.print(_table(report))
    for text, before, after in report.story():
        console.print(f"  “{text}”: {before} steps without memory, {after} with")
    totals = report.with_memory.totals()
    if totals.relevant_tasks:
        console.print(
            f"  Where a case of the same kind had succeeded before ({totals.relevant_tasks} tasks): success"
            f" {totals.relevant_success:.0%}, {totals.relevant_steps_per_task:.1f} steps a task"
        )
    latency = totals.retrieve_p50_ms
    price = f"{totals.tokens} tokens in all" + (f", retrieve p50 {latency:.1f} ms" if latency is not None else "")
    console.print(f"  Price of memory: {price}; memory errors: {totals.memory_errors}")
    console.print(f"[dim]{EXPLANATION}[/dim]")


def _table(report: DemoReport) -> Table:
    without, with_memory = report.without, report.with_memory
    title = (
        f"{len(without.records)} tasks, seed {report.seed}, at most {report.budget} steps a task (scripted operator)"
    )
    table = Table("tenth", title=title, title_justify="left")
    for name in ("steps", "steps", "success", "success", "first try", "first try"):
        table.add_column(name, justify="right")
    table.add_row("", *("without", "with") * 3, style="dim", end_section=True)
    values = [arm.per_part(value) for value in (_steps, _success, _first_try) for arm in (without, with_memory)]
    for part, row in enumerate(zip(*values, strict=True), start=1):
        table.add_row(str(part), *_cells(row))
    table.add_section()
    pairs = zip(without.totals().headline, with_memory.totals().headline, strict=True)
    totals = [number for pair in pairs for number in pair]
    table.add_row("all", *_cells(totals), style="bold")
    change = [f"{report.steps_change:+.0%}", *(f"{100 * (totals[i + 1] - totals[i]):+.0f} points" for i in (2, 4))]
    table.add_row("change", *(cell for text in change for cell in ("", text)), style="bold")
    return table


def _cells(row: Sequence[float]) -> list[str]:
    return [f"{value:.1f}" for value in row[:2]] + [f"{value:.0%}" for value in row[2:]]


def _arm_dict(arm: Arm) -> dict[str, object]:
    return {
        "totals": asdict(arm.totals()),
        "steps_per_tenth": arm.per_part(_steps),
        "success_per_tenth": arm.per_part(_success),
        "first_try_per_tenth": arm.per_part(_first_try),
        "errors": list(arm.errors)[:20],
        "tasks": [asdict(record) for record in arm.records],
    }


def _mean(records: Sequence[TaskRecord], value: Callable[[TaskRecord], float]) -> float:
    return sum(map(value, records)) / len(records)


def _steps(record: TaskRecord) -> float:
    return record.steps


def _success(record: TaskRecord) -> float:
    return record.success


def _first_try(record: TaskRecord) -> float:
    return record.first_try
