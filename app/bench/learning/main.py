"""Runs the benchmark of learning, all five parts, in a process of its own: ``python -m app.bench.learning.main``."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from app import logs
from app.bench.learning import banking, gate, poison, reuse, runs, speed, tau
from app.bench.main import as_table
from app.bench.measure import Measurement
from app.providers.wordllama import WordLlamaEmbedder

BESIDE_THE_REPOSITORY = Path(__file__).parents[3] / ".." / "shared" / "data"
DOMAINS = ("retail", "airline")
GATE_SEED = 0
WIDTH = 200
"""Columns of the table where there is no terminal."""

Say = Callable[[str], object]
Part = Callable[[Path, Say], Awaitable[list[Measurement]]]


class DataMissing(FileNotFoundError):
    """The folder of a part's data is not there."""


async def _reuse(data: Path, say: Say) -> list[Measurement]:
    return reuse.run(await _banking(data), say=say)


async def _runs(domain: str, data: Path, say: Say) -> list[Measurement]:
    folder = data / "tau" / domain
    if not (folder / "runs.jsonl").exists():
        raise DataMissing(folder)
    return runs.run(domain, await tau.read(folder, WordLlamaEmbedder()), say)


async def _gate(_data: Path, _say: Say) -> list[Measurement]:
    return [_named("gate", row) for row in gate.run(GATE_SEED)]


async def _poison(data: Path, _say: Say) -> list[Measurement]:
    return poison.run(await _banking(data))


async def _speed(_data: Path, _say: Say) -> list[Measurement]:
    return speed.run()


PARTS: Mapping[str, Part] = {
    "speed": _speed,
    "reuse": _reuse,
    **{f"runs {domain}": partial(_runs, domain) for domain in DOMAINS},
    "gate": _gate,
    "poison": _poison,
}
"""Speed first: its memory is not that of the others."""


async def _banking(data: Path) -> banking.Corpus:
    folder = data / "banking77"
    if not (folder / "test.csv").exists():
        raise DataMissing(folder)
    return await banking.read(folder, WordLlamaEmbedder())


def _named(part: str, row: Measurement) -> Measurement:
    return Measurement(**{**asdict(row), "name": f"{part} {row.name}"})


async def measure(
    data: Path, parts: Mapping[str, Part], say: Say, keep: Callable[[list[Measurement]], object] = lambda _found: None
) -> list[Measurement]:
    """Returns what the parts measured; one whose data is missing says so and is left out.

    ``keep`` is told what was found after each part, so that nothing is lost when a later one is broken off.
    """
    found: list[Measurement] = []
    for name, part in parts.items():
        started = time.perf_counter()
        try:
            found += await part(data, say)
        except DataMissing as missing:
            say(f"{name}: SKIPPED, no data in {missing}; --data or CASEBANK_DATA names another folder")
            found.append(Measurement(f"{name}: SKIPPED", float("nan"), "", "its data is not on this machine"))
        say(f"{name}: {time.perf_counter() - started:.0f} s")
        keep(found)
    return found


def main(
    json_file: Annotated[Path | None, typer.Option("--json", help="write the numbers here, too")] = None,
    data: Annotated[
        Path, typer.Option(envvar="CASEBANK_DATA", help="the folder with banking77 and tau")
    ] = BESIDE_THE_REPOSITORY,
    part: Annotated[list[str] | None, typer.Option(help=f"of {', '.join(PARTS)}: these parts alone")] = None,
) -> None:
    """Measure what the policy learns, what the gate lets through, what poison does, and how long it takes."""
    logs.quiet()
    progress = Console(stderr=True, style="dim", markup=False)
    if unknown := set(part or ()) - set(PARTS):
        raise typer.BadParameter(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    chosen = {name: PARTS[name] for name in PARTS if not part or name in part}

    def keep(found: list[Measurement]) -> None:
        if json_file is not None:
            json_file.write_text(json.dumps([asdict(row) | {"reached": row.reached} for row in found], indent=2) + "\n")

    measured = asyncio.run(measure(data, chosen, progress.print, keep))
    Console(width=None if Console().is_terminal else WIDTH).print(as_table(measured))


if __name__ == "__main__":
    typer.run(main)
