"""``python -m bench NAME``: speed, memory and what is lost, as ratios within one run."""

import json
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
from bench.main import (
    BENCHMARKS,
    COST,
    FAULTS,
    IMPACT,
    LEARNING,
    RECALL,
    as_table,
    fails,
    run_benchmarks,
    run_faults,
    run_learning,
)

out = Console()


def bench(  # noqa: PLR0913, PLR0917 - each is an option of the command line
    name: Annotated[
        str,
        typer.Argument(
            help=f"one of {', '.join(BENCHMARKS)}, all of them; or {LEARNING}, {FAULTS}, {RECALL} or {IMPACT}"
        ),
    ],
    json_file: Annotated[Path | None, typer.Option("--json", help="write the numbers here, too")] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            envvar="CASEBANK_DATA",
            help=f"with {LEARNING}, lessons: the folder with banking77 and tau; with {RECALL}: that with conversations",
        ),
    ] = None,
    kills: Annotated[int, typer.Option(min=1, help=f"with {FAULTS}: how many processes are killed")] = 200,
    seed: Annotated[int, typer.Option(help=f"with {FAULTS}: the same seed kills in the same order")] = 1,
    only: Annotated[
        list[str] | None, typer.Option(help=f"with {FAULTS}: kill this alone, may be repeated; {', '.join(VICTIMS)}")
    ] = None,
    tolerance: Annotated[
        float, typer.Option(min=0, help=f"with {COST}: percent by which a size may have grown since the last release")
    ] = cost.TOLERANCE,
    keep: Annotated[bool, typer.Option("--keep", help=f"with {COST}: make these the figures of the release")] = False,
) -> None:
    """Measure speed and memory, as ratios within one run.

    What a case costs is compared with the last release: with `cost` alone the exit status is 1 if it costs more.

    Not part of all, for they take minutes: what the policy learns, and what kill -9 of one process after another loses
    and how long it takes to come back. That one exits with 1 if anything was lost, doubled, stuck or too slow; and so
    does whether the answer to "did memory help?" is true, if it claims too much or its intervals miss too often.
    """
    logs.quiet()
    alone = (LEARNING, FAULTS, RECALL, IMPACT)
    if name not in {"all", *alone, *BENCHMARKS}:
        raise typer.BadParameter(f"no benchmark {name!r}; there are {', '.join((*BENCHMARKS, *alone))}, all")
    if name == RECALL and (data is None or not (data / "conversations.jsonl").is_file()):
        raise typer.BadParameter("recall needs --data: a folder with conversations.jsonl")
    if name == LEARNING:
        raise typer.Exit(run_learning(json_file, data))
    if name == FAULTS:
        measured = run(run_faults(kills, seed, _victims(only or [])))
    else:
        measured = run(run_benchmarks(list(BENCHMARKS) if name == "all" else [name], data))
    if name == COST and keep:
        cost.keep(measured, version("casebank"))
    measured = cost.against(measured, cost.figures(), tolerance)
    out.print(as_table(measured))
    if json_file is not None:
        json_file.write_text(json.dumps([asdict(measurement) for measurement in measured], indent=2) + "\n")
    if fails(name, measured):
        raise typer.Exit(1)


def _victims(named: list[str]) -> list[str]:
    if unknown := set(named) - set(VICTIMS):
        raise typer.BadParameter(f"nobody is called {', '.join(sorted(unknown))}", param_hint="--only")
    return named


if __name__ == "__main__":
    typer.run(bench)
