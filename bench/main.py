"""The benchmarks by name, and the table of their measurements."""

import asyncio
import gc
import shutil
import signal
import tempfile
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from app import postgres
from bench.advice_speed import advice
from bench.ceiling import ceiling
from bench.console import console
from bench.cost import AIMS, cost
from bench.failures.main import failures
from bench.fairness import fairness
from bench.faults.main import faults
from bench.faults.victims import VICTIMS
from bench.findings.main import findings
from bench.floods import flood
from bench.idle import idle
from bench.impact import impact
from bench.lessons import lessons
from bench.mcp import mcp
from bench.measure import Measurement
from bench.names.main import names
from bench.peers.main import Row, peers
from bench.poison import poison
from bench.process import process
from bench.read import growth, http, retrieve
from bench.ready import ready
from bench.recall import recall
from bench.replay.main import replay
from bench.scale import scale
from bench.secrets.main import secrets
from bench.write import retain

COST, FAULTS, IMPACT, RECALL, LESSONS = "cost", "faults", "impact", "recall", "lessons"
ADVICE, NAMES, PEERS, READY, REPLAY, GATE, SCALE = "advice", "names", "peers", "ready", "replay", "gate", "scale"
RETRIEVE, HTTP, RETAIN = "retrieve", "http", "retain"

Measure = Callable[[Path], Awaitable[list[Measurement]]]
"""Measures on a bank of its own in an empty folder."""
MeasureData = Callable[[Path, Path | None], Awaitable[list[Measurement]]]
"""Measures likewise, and reads a folder of data."""


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A benchmark of the service, with its line in the help."""

    summary: str
    measure: Measure


BENCHMARKS: dict[str, Benchmark] = {
    "growth": Benchmark("A retrieve in 400,000 cases against one in 10,000.", growth),
    "idle": Benchmark("A service that nobody calls: statements, processor; and its start.", idle),
    "process": Benchmark("Memory of a serving process.", process),
    "secrets": Benchmark("Redaction: secrets found, harmless texts left alone, time.", secrets),
    "flood": Benchmark("Hostile bodies and stalled clients: harm to another user.", flood),
    "fairness": Benchmark("Requests and cases of one user beside another's flood.", fairness),
    "poison": Benchmark("Places that planted cases take on slates.", poison),
    "findings": Benchmark("Findings of a coding agent: reads spared, stale answers.", findings),
    "mcp": Benchmark("A retrieve by MCP against one over HTTP.", mcp),
    "console": Benchmark("Pages of the console among 10,000 cases: time and bytes.", console),
    "ceiling": Benchmark("Steps of the demo if memory tells each solution.", ceiling),
    "failures": Benchmark("Calls of an agent in SQL and in a shell, with memory (minutes).", failures),
    COST: Benchmark("Bytes and time of a case against the last release.", cost),
}
"""Benchmarks that need nothing but an empty folder, all of them part of ``python -m bench all``."""

WITH_DATA: dict[str, MeasureData] = {
    RETRIEVE: retrieve,
    HTTP: http,
    RETAIN: retain,
    LESSONS: lessons,
    RECALL: recall,
    READY: ready,
    ADVICE: advice,
    NAMES: names,
    REPLAY: replay,
}
"""Benchmarks that read a folder of data."""


def names_of_all() -> list[str]:
    """Returns the names of the benchmarks of ``python -m bench all``."""
    return [RETRIEVE, HTTP, RETAIN, *BENCHMARKS, LESSONS]


async def run_benchmarks(names: Sequence[str], data: Path | None = None) -> list[Measurement]:
    """Runs each benchmark on a bank of its own that is then deleted, and returns their measurements.

    Args:
        names: names of benchmarks.
        data: folder of data, for the benchmarks that read one.
    """
    measured: list[Measurement] = []
    gc.freeze()  # as the service does
    for name in names:
        Console(stderr=True).print(f"{name} ...", style="dim")
        with tempfile.TemporaryDirectory(prefix="casebank-bench-", ignore_cleanup_errors=True) as folder:
            home = Path(folder)
            try:
                if name in WITH_DATA:
                    measured += await WITH_DATA[name](home, data)
                else:
                    measured += await (impact if name == IMPACT else BENCHMARKS[name].measure)(home)
            finally:
                postgres.release(home)
    return measured


async def run_scale(users: int) -> list[Measurement]:
    """Runs the benchmark of a large bank of that many users in a folder that is then deleted."""
    with tempfile.TemporaryDirectory(prefix="casebank-bench-", ignore_cleanup_errors=True) as folder:
        try:
            return await scale(Path(folder), users)
        finally:
            postgres.release(Path(folder))


async def run_peers(data: Path, runs: int, queries: int) -> list[Row]:
    """Runs the benchmark of other memories in a folder that is then deleted."""
    gc.freeze()
    with tempfile.TemporaryDirectory(prefix="casebank-bench-", ignore_cleanup_errors=True) as folder:
        try:
            return await peers(Path(folder), data, runs, queries)
        finally:
            postgres.release(Path(folder))


async def run_faults(kills: int, seed: int, only: Collection[str]) -> list[Measurement]:
    """Runs the benchmark of faults in a folder of its own, which stays after a fault; returns its measurements."""
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
    """Returns whether the benchmark of that name ends with exit status 1; the fixed aims of a cost do not count."""
    return name in {FAULTS, COST, IMPACT} and missed([each for each in measured if each.name not in AIMS])


def as_table(measured: Sequence[Measurement]) -> Table:
    """Returns the measurements as a table, the missed aims marked."""
    table = Table("what", "measured", "95 %", "aim", "", "detail")
    for item in measured:
        mark = "" if item.reached is None else "reached" if item.reached else "MISSED"
        table.add_row(item.name, _number(item.value, item.unit), _interval(item), item.aim_text, mark, item.detail)
    return table


def _number(value: float, unit: str) -> str:
    # a bare number lies between -1 and 1 and takes three digits; one with a unit takes two
    return f"{value:.2f} {unit}" if unit else f"{value:.3f}"


def _interval(item: Measurement) -> str:
    return "" if item.interval is None else f"{item.interval[0]:.3f} to {item.interval[1]:.3f}"
