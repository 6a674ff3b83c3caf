"""The benchmarks by name, and the table of what they measured."""

import gc
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from app import embedded
from app.bench.measure import Measurement
from app.bench.process import process
from app.bench.read import growth, http, retrieve
from app.bench.write import retain

Benchmark = Callable[[Path], Awaitable[list[Measurement]]]

BENCHMARKS: dict[str, Benchmark] = {
    "retrieve": retrieve,
    "http": http,
    "retain": retain,
    "growth": growth,
    "process": process,
}


async def run_benchmarks(names: Sequence[str]) -> list[Measurement]:
    """Runs each benchmark on a bank of its own that is thrown away, and returns what they measured."""
    measured: list[Measurement] = []
    gc.freeze()  # as the service does
    for name in names:
        Console(stderr=True).print(f"{name} ...", style="dim")
        with tempfile.TemporaryDirectory(prefix="casebank-bench-", ignore_cleanup_errors=True) as folder:
            home = Path(folder)
            try:
                measured += await BENCHMARKS[name](home)
            finally:
                embedded.release(home)
    return measured


def as_table(measured: Sequence[Measurement]) -> Table:
    """Returns the measurements as a table, the missed aims marked."""
    table = Table("what", "measured", "aim", "", "detail")
    for item in measured:
        mark = "" if item.reached is None else "reached" if item.reached else "MISSED"
        table.add_row(item.name, f"{item.value:.2f} {item.unit}", item.aim_text, mark, item.detail)
    return table
