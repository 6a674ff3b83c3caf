"""Runs the benchmark of learning, all parts, in processes of its own: ``python -m bench.learning.main``."""

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
from typing import Annotated

import typer
from rich.console import Console

from app import logs
from app.providers.wordllama import WordLlamaEmbedder
from bench.learning import (
    banking,
    credit,
    fleet,
    fleet_gate,
    fleet_night,
    fleet_runs,
    gate,
    poison,
    reuse,
    runs,
    speed,
    tau,
)
from bench.main import as_table
from bench.measure import Measurement

BESIDE_THE_REPOSITORY = Path(__file__).parents[2] / ".." / "shared" / "data"
DOMAINS = ("retail", "airline")
GATE_SEED = 0
WHOLE_MIN = 15.0
"""Minutes that the whole may take on two cores."""
WIDTH = 200
"""Columns of the table where there is no terminal."""

Say = Callable[[str], object]
Part = Callable[[Path, Say], Awaitable[list[Measurement]]]


class DataMissing(FileNotFoundError):
    """The folder of a part's data is not there."""


async def _reuse(data: Path, say: Say) -> list[Measurement]:
    return reuse.run(await _banking(data), say=say)


async def _runs(domain: str, data: Path, say: Say) -> list[Measurement]:
    return runs.run(domain, await _domain(data, domain), say)


async def _credit(data: Path, _say: Say) -> list[Measurement]:
    return credit.run(await _banking(data))


async def _gate(_data: Path, _say: Say) -> list[Measurement]:
    return [replace(row, name=f"gate {row.name}") for row in gate.run(GATE_SEED)]


async def _fleet(data: Path, say: Say) -> list[Measurement]:
    return fleet.run(await _banking(data), say)


async def _fleet_runs(domain: str, data: Path, _say: Say) -> list[Measurement]:
    return fleet_runs.on_runs(domain, await _domain(data, domain))


async def _fleet_gate(_data: Path, _say: Say) -> list[Measurement]:
    return [replace(row, name=f"fleet gate {row.name}") for row in fleet_gate.run(GATE_SEED)]


async def _fleet_night(_data: Path, _say: Say) -> list[Measurement]:
    return await fleet_night.run()


async def _poison(data: Path, _say: Say) -> list[Measurement]:
    return poison.run(await _banking(data))


async def _speed(_data: Path, _say: Say) -> list[Measurement]:
    return speed.run()


ALONE = "speed"
"""Measured before the others, in a process with all cores: its times and its memory are not theirs."""
PARTS: dict[str, Part] = {
    ALONE: _speed,
    **{f"runs {domain}": partial(_runs, domain) for domain in DOMAINS},
    "reuse": _reuse,
    "credit": _credit,
    "poison": _poison,
    "fleet": _fleet,
    **{f"fleet {domain}": partial(_fleet_runs, domain) for domain in (*DOMAINS, "telecom")},
    "fleet gate": _fleet_gate,
    "fleet night": _fleet_night,
    "gate": _gate,
}
"""The longest of the others first, so that they end at about the same time."""


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
class Done:
    """What a part measured, and how long it took by the clock and on the processors."""

    name: str
    rows: list[Measurement]
    wall_s: float
    cpu_s: float


def say(text: str) -> None:
    """Writes to the error output, beside the table."""
    Console(stderr=True, style="dim", markup=False).print(text)


def measure(name: str, data: Path, say: Say = say) -> Done:
    """Returns what the part measured; where its data is missing it says so instead."""
    started, busy = time.perf_counter(), time.process_time()
    try:
        rows = asyncio.run(_found(PARTS[name](data, say)))
    except DataMissing as missing:
        say(f"{name}: SKIPPED, no data in {missing}; --data or CASEBANK_DATA names another folder")
        rows = [Measurement(f"{name}: SKIPPED", float("nan"), "", "its data is not on this machine")]
    done = Done(name, rows, time.perf_counter() - started, time.process_time() - busy)
    say(f"{name}: {done.wall_s:.0f} s, {done.cpu_s:.0f} s of CPU")
    return done


async def _found(part: Awaitable[list[Measurement]]) -> list[Measurement]:
    return await part


def measured(names: Sequence[str], data: Path, processes: int) -> Iterator[Done]:
    """Yields the parts as they end, so many at once but for ALONE, each in a process of one thread."""
    if ALONE in names:
        yield measure(ALONE, data)
    for library in ("OMP", "OPENBLAS", "MKL"):
        os.environ[f"{library}_NUM_THREADS"] = "1"  # read as a process starts
    with ProcessPoolExecutor(processes, get_context("spawn"), logs.quiet) as pool:
        for ended in as_completed([pool.submit(measure, name, data) for name in names if name != ALONE]):
            yield ended.result()


def table(done: Sequence[Done], wall_s: float) -> list[Measurement]:
    """Returns all that was measured, in the order of PARTS, and last how long it took."""
    parts = sorted(done, key=lambda part: list(PARTS).index(part.name))
    times = [Measurement(f"time {part.name}", part.wall_s, "s", f"{part.cpu_s:.0f} s of CPU") for part in parts]
    busy = sum(part.cpu_s for part in parts) / 60
    aim = WHOLE_MIN if len(parts) == len(PARTS) else None
    whole = Measurement("time of all these", wall_s / 60, "min", f"{busy:.1f} min of CPU", aim)
    return [*(row for part in parts for row in part.rows), *times, whole]


def main(
    json_file: Annotated[Path | None, typer.Option("--json", help="write the numbers here, too")] = None,
    data: Annotated[
        Path, typer.Option(envvar="CASEBANK_DATA", help="the folder with banking77 and tau")
    ] = BESIDE_THE_REPOSITORY,
    part: Annotated[list[str] | None, typer.Option(help=f"of {', '.join(PARTS)}: these parts alone")] = None,
    processes: Annotated[int, typer.Option(min=1, help="parts measured at once")] = os.cpu_count() or 1,
) -> None:
    """Measure what the policy learns, what the gate lets through, what poison does, and how long it takes."""
    logs.quiet()
    if unknown := set(part or ()) - set(PARTS):
        raise typer.BadParameter(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    started, done = time.perf_counter(), list[Done]()
    for ended in measured([name for name in PARTS if not part or name in part], data, processes):
        done.append(ended)
        _keep(json_file, table(done, time.perf_counter() - started))  # kept if a later part is stopped
    rows = table(done, time.perf_counter() - started)
    Console(width=None if Console().is_terminal else WIDTH).print(as_table(rows))


def _keep(file: Path | None, rows: Sequence[Measurement]) -> None:
    if file is not None:
        file.write_text(json.dumps([asdict(row) | {"reached": row.reached} for row in rows], indent=2) + "\n")


if __name__ == "__main__":
    typer.run(main)
