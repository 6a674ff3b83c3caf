"""The report of the demo: a table of the arms, and the comparison of casebank with keyword memory."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from app.demo.arms import FIRST_TRY, PARTS, STEPS, SUCCESS, Arm, Stream, mean, pooled
from app.demo.compare import ArmComparison, compare
from retrieval.patterns import read

EXPLANATION: str = read("app.demo.operator", "texts.toml")["explanation"]


@dataclass(frozen=True)
class DemoReport:
    """All streams of a demo."""

    budget: int
    streams: Sequence[Stream]

    @cached_property
    def comparison(self) -> ArmComparison:
        """Casebank against keyword memory, over all streams."""
        return compare(self.streams)

    @cached_property
    def comparison_at_failures(self) -> ArmComparison:
        """Casebank against keyword memory that is asked at failures, too, over all streams."""
        return compare(self.streams, at_failures=True)

    @cached_property
    def arms(self) -> list[Arm]:
        """Each arm over all streams."""
        return [pooled(arms) for arms in zip(*(stream.arms for stream in self.streams), strict=True)]

    def story(self) -> list[tuple[str, int, int]]:
        """Returns the first two tasks of the kind "missing type": text, steps without memory, steps with casebank."""
        first = self.streams[0]
        pairs = zip(first.without.records, first.casebank.records, strict=True)
        return [(a.task, a.steps, b.steps) for a, b in pairs if a.task_id in ("missing_type-0", "missing_type-1")]

    def write(self, folder: Path) -> Path:
        """Writes every number of the report as JSON, and returns the file."""
        numbers = {
            "operator": "scripted operator, not an LLM",
            "explanation": EXPLANATION,
            "budget": self.budget,
            "story": [[text, before, after] for text, before, after in self.story()],
            "casebank_against_keyword_memory": {
                **self.comparison.as_dict(),
                "beats_keyword_memory": self.comparison.proven,
            },
            "casebank_against_keyword_memory_at_failures": self.comparison_at_failures.as_dict(),
            "streams": [stream.as_dict() for stream in self.streams],
        }
        file = folder / "demo.json"
        file.write_text(json.dumps(numbers, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return file


def print_report(report: DemoReport, console: Console) -> None:
    """Prints the arms' numbers by tenths of the stream, the comparison with keyword memory, and casebank's cost."""
    seeds = ", ".join(str(stream.seed) for stream in report.streams)
    tasks = sum(len(stream.without.records) for stream in report.streams)
    title = f"{tasks} tasks, seed {seeds}, at most {report.budget} steps a task (scripted operator)"
    table = Table("tenth", title=title, title_justify="left", box=SIMPLE, padding=0)
    table.caption = (
        "none: no memory; words: keyword memory; twice: the same, asked at failures, too; bank: casebank; "
        "first: solved at the first try"
    )
    table.caption_justify = "left"
    for name in ("steps", "", "", "", "  solved", "", "", "", "  first", "", "", ""):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_row("", *("none", "words", "twice", "bank") * 3, style="dim", end_section=True)
    for place in range(PARTS):
        table.add_row(str(place + 1), *_cells([Arm(arm.name, arm.parts()[place]) for arm in report.arms]))
    table.add_section()
    table.add_row("all", *_cells(report.arms), style="bold")
    console.print(table)
    for stream in report.streams if len(report.streams) > 1 else ():
        found = (
            f"{arm.name} {mean(arm.records, STEPS):.1f} steps, {mean(arm.records, SUCCESS):.0%},"
            f" first try {mean(arm.records, FIRST_TRY):.0%}"
            for arm in stream.arms
        )
        console.print(f"  seed {stream.seed}: {'; '.join(found)}")
    for text, before, after in report.story():
        console.print(f"  “{text}”: {before} steps without memory, {after} with casebank")
    console.print(f"  {report.comparison.sentence()}", style="bold")
    console.print(f"  {report.comparison_at_failures.against('keyword memory asked at failures, too')}", style="bold")
    totals = report.arms[-1].totals()
    latency = totals["retrieve_p50_ms"]
    price = f"{totals['tokens']} tokens in all" + (f", retrieve p50 {latency:.1f} ms" if latency is not None else "")
    console.print(f"  Price of casebank: {price}; memory errors: {totals['memory_errors']}")
    console.print(EXPLANATION, style="dim")


def _cells(arms: Sequence[Arm]) -> list[str]:
    rows = [arm.records for arm in arms]
    steps = [f"{mean(row, STEPS):.1f}" for row in rows]
    return [*steps, *(f"{mean(row, value):.0%}" for value in (SUCCESS, FIRST_TRY) for row in rows)]
