"""``python -m bench NAME``: measures speed, memory, losses and choices."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from app import logs
from app.terminal.run_to_end import run_to_end as run
from bench import cost
from bench.faults.victims import VICTIMS
from bench.gate.main import gate as measure_gate
from bench.main import (
    ADVICE,
    BENCHMARKS,
    COST,
    FAULTS,
    GATE,
    HTTP,
    IMPACT,
    LESSONS,
    NAMES,
    PEERS,
    READY,
    RECALL,
    REPLAY,
    RETAIN,
    RETRIEVE,
    SCALE,
    as_table,
    fails,
    names_of_all,
    run_benchmarks,
    run_faults,
    run_peers,
    run_scale,
)
from bench.measure import Measurement
from bench.peers.main import QUERIES, RUNS
from bench.scale import PER_USER, SMALL, USERS

DATA = Path(__file__).parents[1] / ".." / "shared" / "data"
"""Folder of data beside the repository."""

JsonFile = Annotated[Path | None, typer.Option("--json", help="also write the numbers to this file")]

program = typer.Typer(add_completion=False, no_args_is_help=True)


@program.callback()
def bench() -> None:
    """Measure casebank. Times are ratios within one run; missed aims are marked."""
    logs.quiet()


@program.command("all")
def every(
    json_file: JsonFile = None,
    data: Annotated[Path, typer.Option(envvar="CASEBANK_DATA", help="folder with tau")] = DATA,
) -> None:
    """Every benchmark down to lessons, one after the other."""
    _show("all", run(run_benchmarks(names_of_all(), data)), json_file)


def _command(name: str) -> Callable[[Path | None], None]:
    def command(json_file: JsonFile = None) -> None:
        _show(name, run(run_benchmarks([name])), json_file)

    return command


for _name, _benchmark in BENCHMARKS.items():
    if _name != COST:
        program.command(_name, help=_benchmark.summary)(_command(_name))


@program.command(COST)
def cost_of_a_case(
    json_file: JsonFile = None,
    tolerance: Annotated[float, typer.Option(min=0, help="percent by which a size may grow")] = cost.TOLERANCE,
    keep: Annotated[bool, typer.Option("--keep", help="store these figures as those of the release")] = False,
) -> None:
    """Bytes and time of a case against the last release.

    Exit status 1 if a figure grew by more than the tolerance.
    """
    measured = run(run_benchmarks([COST]))
    if keep:
        cost.keep(measured, version("casebank"))
    _show(COST, measured, json_file, tolerance)


def _command_with_data(name: str) -> Callable[[Path | None, Path], None]:
    def command(
        json_file: JsonFile = None,
        data: Annotated[Path, typer.Option(envvar="CASEBANK_DATA", help="folder with tau")] = DATA,
    ) -> None:
        _show(name, run(run_benchmarks([name], data)), json_file)

    return command


for _name, _help in {
    RETRIEVE: "A retrieve in the process against its bare statement.",
    HTTP: "A retrieve over HTTP with 16 clients at once: speed and cost.",
    RETAIN: "A retain against a bare INSERT: time, and number a second.",
    ADVICE: "Advice at failed calls of real agents: fixes told, and time.",
    LESSONS: "The failure analyst on real runs, and the experiment (minutes).",
    NAMES: "Procedures found by a short name: how many, and how many fit.",
    READY: "A worker that makes real runs findable: cases a second, and cost.",
}.items():
    program.command(_name, help=_help)(_command_with_data(_name))


@program.command(RECALL)
def recall(
    data: Annotated[Path, typer.Option(envvar="CASEBANK_DATA", help="folder with conversations.jsonl")],
    json_file: JsonFile = None,
) -> None:
    """Recall of long conversations: evidence found, speed (minutes)."""
    if not (data / "conversations.jsonl").is_file():
        raise typer.BadParameter("the folder has no conversations.jsonl", param_hint="--data")
    _show(RECALL, run(run_benchmarks([RECALL], data)), json_file)


@program.command(IMPACT)
def impact(json_file: JsonFile = None) -> None:
    """The answer to "did memory help?" where truth is known (minutes).

    Exit status 1 if it claims too much, or if its intervals miss too often.
    """
    _show(IMPACT, run(run_benchmarks([IMPACT])), json_file)


@program.command(FAULTS)
def faults(
    json_file: JsonFile = None,
    kills: Annotated[int, typer.Option(min=1, help="processes to kill")] = 200,
    seed: Annotated[int, typer.Option(help="the same seed gives the same order of kills")] = 1,
    only: Annotated[list[str] | None, typer.Option(help=f"kill only this; repeatable: {', '.join(VICTIMS)}")] = None,
) -> None:
    """Losses and time to recover under kill -9 (half an hour).

    Exit status 1 if anything is lost, doubled, stuck or too slow.
    """
    if unknown := set(only or ()) - set(VICTIMS):
        raise typer.BadParameter(f"no victim {', '.join(sorted(unknown))}", param_hint="--only")
    _show(FAULTS, run(run_faults(kills, seed, only or [])), json_file)


@program.command(REPLAY)
def replay(
    json_file: JsonFile = None,
    data: Annotated[Path, typer.Option(envvar="CASEBANK_DATA", help="folder with banking77 and tau")] = DATA,
) -> None:
    """Finds the order that tells a plan that works first (minutes).

    On streams of runs, in closed loops, and on cells of tau-bench. What lacks its data or package is skipped.
    """
    _show(REPLAY, run(run_benchmarks([REPLAY], data)), json_file)


@program.command(PEERS)
def peers(
    json_file: JsonFile = None,
    data: Annotated[Path, typer.Option(envvar="CASEBANK_DATA", help="folder with tau")] = DATA,
    runs: Annotated[int, typer.Option(min=1, help="runs in the bank")] = RUNS,
    queries: Annotated[int, typer.Option(min=2, help="further runs that ask")] = QUERIES,
) -> None:
    """Casebank beside other memories, on runs of real agents (minutes).

    What is not installed is skipped.
    """
    rows = run(run_peers(data, runs, queries))
    if json_file is not None:
        json_file.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")


@program.command(SCALE)
def scale(
    json_file: JsonFile = None,
    users: Annotated[int, typer.Option(min=SMALL, help=f"users of the large bank, {PER_USER} cases each")] = USERS,
) -> None:
    """A million cases beside 10,000, two replicas beside one (minutes).

    Needs 10 GB of disk for a while.
    """
    _show(SCALE, run(run_scale(users)), json_file)


@program.command(GATE)
def gate(json_file: JsonFile = None) -> None:
    """Policies that the gate promotes where truth is known (minutes)."""
    _show(GATE, measure_gate(), json_file)


def _show(
    name: str, measured: Sequence[Measurement], json_file: Path | None, tolerance: float = cost.TOLERANCE
) -> None:
    """Prints the table and writes the file; ends with exit status 1 where the benchmark fails."""
    compared = cost.against(measured, cost.figures(), tolerance)
    Console().print(as_table(compared))
    if json_file is not None:
        json_file.write_text(json.dumps([asdict(measurement) for measurement in compared], indent=2) + "\n")
    if fails(name, compared):
        raise typer.Exit(1)


if __name__ == "__main__":
    program(prog_name="python -m bench")
