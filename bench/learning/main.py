"""Runs the parts of the benchmark of learning in processes of their own: ``python -m bench learning``."""

import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from rich.console import Console

from app import logs
from app.providers.wordllama import WordLlamaEmbedder
from bench.learning import (
    banking,
    credit,
    gate,
    poison,
    reuse,
    runs,
    speed,
    tau,
)
from bench.learning.parts import Part
from bench.main import as_table
from bench.measure import Measurement

GATE_SEED = 0
WHOLE_MIN = 15.0
"""Minutes that all parts together may take on two cores."""
WIDTH = 200
"""Columns of the table where there is no terminal."""

Say = Callable[[str], object]
Measure = Callable[[Path, Say], Awaitable[list[Measurement]]]


class DataMissing(FileNotFoundError):
    """The folder of a part's data is not there."""


async def _reuse(data: Path, say: Say) -> list[Measurement]:
    return reuse.run(await _banking(data), say=say)


async def _runs(domain: str, data: Path, say: Say) -> list[Measurement]:
    return runs.run(domain, await _domain(data, domain), say)


async def _credit(data: Path, _say: Say) -> list[Measurement]:
    return credit.run(await _banking(data))


async def _poison(data: Path, _say: Say) -> list[Measurement]:
    return poison.run(await _banking(data))


async def _gate(_data: Path, _say: Say) -> list[Measurement]:
    return [replace(row, name=f"gate {row.name}") for row in gate.run(GATE_SEED)]


async def _speed(_data: Path, _say: Say) -> list[Measurement]:
    return speed.run()


ALONE = Part.SPEED
"""The part that runs before the others, in a process with all cores: its times and its memory are not theirs."""
MEASURES: dict[Part, Measure] = {
    Part.SPEED: _speed,
    Part.RUNS_RETAIL: partial(_runs, "retail"),
    Part.RUNS_AIRLINE: partial(_runs, "airline"),
    Part.REUSE: _reuse,
    Part.CREDIT: _credit,
    Part.POISON: _poison,
    Part.GATE: _gate,
}


async def _domain(data: Path, name: str) -> tau.Domain:
    folder = data / "tau" / name
    if not (folder / "runs.jsonl").exists():
        raise DataMissing(folder)
    return await tau.read(folder, WordLlamaEmbedder())


async def _banking(data: Path) -> banking.Corpus:
    folder = data / "banking77"
    if not (folder / "test.csv").exists():
        raise DataMissing(folder)
    return await banking.read(folder, WordLlamaEmbedder())


@dataclass(frozen=True, slots=True)
class Result:
    """The measurements of a part, with its seconds by the clock and on the processors."""

    part: Part
    rows: list[Measurement]
    wall_s: float
    cpu_s: float


def say(text: str) -> None:
    """Writes a line to standard error, beside the table."""
    Console(stderr=True, style="dim", markup=False).print(text)


def measure(part: Part, data: Path, say: Say = say) -> Result:
    """Measures the part; where its data is missing the result and a line on standard error call it skipped."""
    started, busy = time.perf_counter(), time.process_time()
    try:
        rows = asyncio.run(_rows(MEASURES[part](data, say)))
    except DataMissing as missing:
        say(f"{part}: SKIPPED, no data in {missing}; --data or CASEBANK_DATA names another folder")
        rows = [Measurement(f"{part}: SKIPPED", float("nan"), "", "its data is not on this machine")]
    result = Result(part, rows, time.perf_counter() - started, time.process_time() - busy)
    say(f"{part}: {result.wall_s:.0f} s, {result.cpu_s:.0f} s of CPU")
    return result


async def _rows(measurement: Awaitable[list[Measurement]]) -> list[Measurement]:
    return await measurement


def results(parts: Sequence[Part], data: Path, processes: int) -> Iterator[Result]:
    """Yields the parts' results as they end, measured in so many processes of one thread each; ALONE goes first."""
    if ALONE in parts:
        yield measure(ALONE, data)
    for library in ("OMP", "OPENBLAS", "MKL"):
        os.environ[f"{library}_NUM_THREADS"] = "1"  # read as a process starts
    with ProcessPoolExecutor(processes, get_context("spawn"), logs.quiet) as pool:
        for ended in as_completed([pool.submit(measure, part, data) for part in parts if part != ALONE]):
            yield ended.result()


def table(done: Sequence[Result], wall_s: float) -> list[Measurement]:
    """Returns all measurements in the order of the parts, and last the times."""
    ordered = sorted(done, key=lambda result: list(Part).index(result.part))
    times = [Measurement(f"time {each.part}", each.wall_s, "s", f"{each.cpu_s:.0f} s of CPU") for each in ordered]
    busy = sum(each.cpu_s for each in ordered) / 60
    aim = WHOLE_MIN if len(ordered) == len(Part) else None
    whole = Measurement("time of all these", wall_s / 60, "min", f"{busy:.1f} min of CPU", aim)
    return [*(row for each in ordered for row in each.rows), *times, whole]


def measure_parts(parts: Sequence[Part], data: Path, processes: int, json_file: Path | None = None) -> None:
    """Measures the parts, prints their table, and writes the numbers to the file after each part that ends."""
    started, done = time.perf_counter(), list[Result]()
    for result in results([part for part in Part if part in parts], data, processes):
        done.append(result)
        if json_file is not None:
            rows = [asdict(row) | {"reached": row.reached} for row in table(done, time.perf_counter() - started)]
            json_file.write_text(json.dumps(rows, indent=2) + "\n")
    width = None if Console().is_terminal else WIDTH
    Console(width=width).print(as_table(table(done, time.perf_counter() - started)))
