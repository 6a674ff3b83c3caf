"""The table of measurements hides nothing."""

from io import StringIO

from rich.console import Console

from bench.main import as_table
from bench.measure import Measurement


def test_a_missed_aim_is_printed_as_missed():
    rows = [
        Measurement("short", 0.5, "", "seed 0", 0.6, at_least=True, interval=(0.4, 0.6)),
        Measurement("there", 0.7, "", "seed 0", 0.6, at_least=True),
        Measurement("unproven", 0.01, "", "seed 0", 0.0, at_least=True, interval=(-0.1, 0.2), proven=True),
    ]
    console = Console(width=160, record=True, file=StringIO())
    console.print(as_table(rows))
    lines = console.export_text().splitlines()
    marks = {
        name: ("MISSED" in line, "reached" in line)
        for name in ("short", "there", "unproven")
        for line in lines
        if name in line
    }
    assert marks == {"short": (True, False), "there": (False, True), "unproven": (True, False)}
