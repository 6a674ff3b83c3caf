"""The demo's report says what the operator is."""

import json
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from app.agents.operator.operator import STEP_BUDGET
from app.demo.files import write_files
from app.demo.report import Arm, DemoReport, TaskRecord, print_report


def test_the_report_says_that_the_operator_is_scripted_and_writes_its_files(tmp_path: Path):
    record = TaskRecord("missing_type-0", "missing_type", "Add it", 8, True, False, False, False, 0, 0, 0, None, 1.0)
    report = DemoReport(1, STEP_BUDGET, Arm("without", [record] * 10), Arm("with", [replace(record, steps=4)] * 10))
    console = Console(record=True, width=120)
    print_report(report, console)
    said = " ".join(console.export_text().split())
    assert "scripted operator, not an LLM" in said
    assert "-50%" in said
    files = write_files(report, tmp_path)
    assert json.loads(Path(files["json"]).read_text())["steps_change"] == -0.5
    assert Path(files["png"]).read_bytes().startswith(b"\x89PNG")
