"""The report has every number, as tables, as JSON and as a picture."""

import json
from pathlib import Path

import pytest
from rich.console import Console

from examples.experiment.files import write_files
from examples.experiment.report import Report
from examples.experiment.tables import print_report
from tests.examples.experiment.riddles import TEXTS


def test_the_transfer_matrix_has_a_cell_for_each_bank_and_family(report: Report):
    transfer = report.as_dict()["transfer"]
    assert list(transfer) == list(TEXTS)
    assert all(list(row) == list(TEXTS) for row in transfer.values())
    assert transfer["dog"]["dog"]["injected"] > 0 == transfer["dog"]["soup"]["injected"]
    assert transfer["soup"]["soup"]["steps_change"] < 0


def test_the_report_is_printed_and_written_as_numbers_and_a_picture(report: Report, tmp_path: Path):
    console = Console(record=True, width=200)
    print_report(report, console)
    said = console.export_text()
    assert "as predicted" in said
    assert "test, expert's bank" in said
    assert "A guesser, not an LLM." in said
    files = write_files(report, tmp_path)
    numbers = json.loads(files["json"].read_text())
    assert numbers["differences"]["steps_change"]["low"] <= numbers["predictions"][0]["measured"]
    without, with_memory = (numbers["arms"][f"test, K = {k}"] for k in (0, 4))
    assert with_memory["tasks"] == 9
    net = without["tokens_spent"] - with_memory["tokens_spent"] - with_memory["tokens_added"]
    assert with_memory["tokens_net"] == pytest.approx(net)
    assert without["tokens_net"] is None
    assert files["png"].read_bytes().startswith(b"\x89PNG")
