"""The benchmarks by name, and the table of what they measured."""

import asyncio
import gc
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from app import postgres
from app.processes.own_module import OWN_MODULE
from bench.console import console
from bench.cost import cost
from bench.fairness import fairness
from bench.faults.main import faults
from bench.faults.victims import VICTIMS
from bench.findings.main import findings
from bench.floods import flood
from bench.impact import impact
from bench.lessons import lessons
from bench.mcp import mcp
from bench.measure import Measurement
from bench.poison import poison
from bench.process import process
from bench.read import growth, http, retrieve
from bench.recall import recall
from bench.secrets.main import secrets
from bench.write import retain

COST = "cost"
"""Compares with the last release: its exit status says whether something became worse."""
LESSONS = "lessons"
"""Reads runs from a folder of data, as learning does."""
IMPACT = "impact"
"""Runs by its own name alone, for minutes: it asks whether what the service says of itself is true."""
RECALL = "recall"
"""Reads conversations from a folder of data, and runs by its own name alone."""

Benchmark = Callable[[Path], Awaitable[list[Measurement]]]

BENCHMARKS: dict[str, Benchmark] = {
    "retrieve": retrieve,
    "http": http,
    "retain": retain,
    "growth": growth,
    "process": process,
    "secrets": secrets,
    "flood": flood,
    "fairness": fairness,
    "poison": poison,
    "findings": findings,
    "mcp": mcp,
    "console": console,
    COST: cost,
    LESSONS: lessons,
}


LEARNING = "learning"
"""Runs by itself, for minutes."""


FAULTS = "faults"
"""Runs by itself, for minutes: it kills what it measures."""


def run_learning(json_file: Path | None, data: Path | None) -> int:
    """Runs the benchmark of learning in a process of its own, for it needs torch; returns its exit status."""
    options = [("--json", json_file), ("--data", data)]
    given = [text for name, value in options if value is not None for text in (name, str(value))]
    command = [*OWN_MODULE, "bench.learning.main", *given]
    return subprocess.run(command, check=False).returncode  # noqa: S603


async def run_benchmarks(names: Sequence[str], data: Path | None = None) -> list[Measurement]:
    """Runs each benchmark on a bank of its own that is thrown away, and returns what they measured.

    Args:
        names: of the benchmarks.
        data: where the runs are that some of them read.
    """
    measured: list[Measurement] = []
    gc.freeze()  # as the service does
    for name in names:
        Console(stderr=True).print(f"{name} ...", style="dim")
        with tempfile.TemporaryDirectory(prefix="casebank-bench-", ignore_cleanup_errors=True) as folder:
            home = Path(folder)
            try:
                measured += await _one(name, home, data)
            finally:
                postgres.release(home)
    return measured


def _one(name: str, home: Path, data: Path | None) -> Awaitable[list[Measurement]]:
    if name == IMPACT:
        return impact(home)
    reads = {LESSONS: lessons, RECALL: recall}.get(name)
    return BENCHMARKS[name](home) if reads is None else reads(home, data)


async def run_faults(kills: int, seed: int, only: Collection[str]) -> list[Measurement]:
    """Runs the benchmark of faults in a folder of its own, and returns what it found; on a fault the folder stays."""
    if (running := asyncio.current_task()) is not None:  # or its programs would outlive it
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, running.cancel)
    folder = Path(tempfile.mkdtemp(prefix="casebank-faults-"))
    measured = await faults(folder / "home", kills, seed, only or VICTIMS)
    if missed(measured):
        Console(stderr=True).print(f"the logs are in {folder}", markup=False)
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return measured


def missed(measured: Sequence[Measurement]) -> bool:
    """Returns whether an aim was missed."""
    return any(item.reached is False for item in measured)


def fails(name: str, measured: Sequence[Measurement]) -> bool:
    """Returns whether the benchmark of that name ends with a status that says that something is wrong."""
    return name in {FAULTS, COST, IMPACT} and missed(measured)


def as_table(measured: Sequence[Measurement]) -> Table:
    """Returns the measurements as a table, the missed aims marked."""
    table = Table("what", "measured", "95 %", "aim", "", "detail")
    for item in measured:
        mark = "" if item.reached is None else "reached" if item.reached else "MISSED"
        table.add_row(item.name, _number(item.value, item.unit), _interval(item), item.aim_text, mark, item.detail)
    return table


def _number(value: float, unit: str) -> str:
    """A bare number lies between -1 and 1 and takes three digits; one with a unit takes two."""
    return f"{value:.2f} {unit}" if unit else f"{value:.3f}"


def _interval(item: Measurement) -> str:
    return "" if item.interval is None else f"{item.interval[0]:.3f} to {item.interval[1]:.3f}"
