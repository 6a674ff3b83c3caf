"""The demo's report says what the operator is, and writes all numbers."""

import json
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from app.demo.arms import Arm, Stream, TaskRecord
from app.demo.operator.operator import STEP_BUDGET
from app.demo.plot import plot
from app.demo.report import DemoReport, print_report

RECORD = TaskRecord("missing_type-0", "missing_type", "Add it", 8, True, False, False, False, 0, 0, 0, None, 1.0)


def stream(seed: int, *, casebank: int) -> Stream:
    return Stream(
        seed,
        Arm("no memory", [RECORD] * 20),
        Arm("keyword memory", [replace(RECORD, steps=5)] * 20),
        Arm("keyword memory at failures", [replace(RECORD, steps=4)] * 20),
        Arm("casebank", [replace(RECORD, steps=casebank)] * 20),
    )


def test_the_report_says_that_the_operator_is_scripted_and_writes_the_numbers_of_each_house(tmp_path: Path):
    report = DemoReport(STEP_BUDGET, [stream(1, casebank=3), stream(2, casebank=5)])
    console = Console(record=True, width=120)
    print_report(report, console)
    said = " ".join(console.export_text().split())
    assert "scripted database operator, not an LLM" in said
    assert "40 tasks, seed 1, 2" in said
    assert "seed 2: no memory 8.0 steps, 100%, first try 0%" in said
    written = json.loads(report.write(tmp_path).read_text())
    assert written["casebank_against_keyword_memory"]["steps"][0] == -0.2
    assert [each["seed"] for each in written["streams"]] == [1, 2]
    assert plot(report, tmp_path).read_bytes().startswith(b"\x89PNG")


def test_the_table_shows_every_number_whole_on_a_terminal_of_80_columns():
    console = Console(record=True, width=80)
    print_report(DemoReport(STEP_BUDGET, [stream(1, casebank=12)]), console)
    lines = console.export_text().splitlines()
    assert next(line for line in lines if line.startswith(" all")).split() == [
        *("all", "8.0", "5.0", "4.0", "12.0", *["100%"] * 4, *["0%"] * 4)
    ]
