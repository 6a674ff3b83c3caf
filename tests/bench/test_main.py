"""The table of measurements hides nothing, and the help of the command lists every benchmark."""

from io import StringIO

from rich.console import Console
from typer.main import get_command

from bench.__main__ import program
from bench.main import (
    ADVICE,
    FAULTS,
    GATE,
    IMPACT,
    NAMES,
    PEERS,
    READY,
    RECALL,
    REPLAY,
    SCALE,
    as_table,
    names_of_all,
)
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


def test_every_benchmark_is_a_command_with_one_line_in_the_help():
    commands = vars(get_command(program))["commands"]
    others = {ADVICE, FAULTS, GATE, IMPACT, NAMES, PEERS, READY, RECALL, REPLAY, SCALE}
    assert set(commands) == {"all", *names_of_all(), *others}
    for name, command in commands.items():
        assert 10 < len(command.get_short_help_str(200)) <= 66, name
