"""``casebank demo`` and ``experiment``: what memory changes, seen in scripted agents."""

from pathlib import Path
from typing import Annotated

import typer

from app import logs
from app.demo.main import demo as run_demo
from app.experiment.main import ENVIRONMENTS
from app.experiment.main import experiment as run_experiment
from app.run_to_end import run_to_end as run
from app.settings import Settings

LARGEST_SLATE = 50


def demo(
    tasks: Annotated[int, typer.Option(min=10, help="tasks of each house")] = 120,
    seed: Annotated[list[int], typer.Option(help="a house; may be said again")] = [31],  # noqa: B006 (typer's way)
    out_dir: Annotated[Path, typer.Option(help="where the plot and the numbers go")] = Path("out"),
    learn: Annotated[
        bool, typer.Option("--learn", help="also train on what was logged, and try what was learned")
    ] = False,
) -> None:
    """Show what memory changes: a scripted database operator with none, with keywords, and with casebank."""
    logs.quiet()
    run(run_demo(Settings(), tasks=tasks, seeds=seed, out_dir=out_dir, learn=learn))


def experiment(  # noqa: PLR0913, PLR0917 - each is an option of the command line
    environment: Annotated[str, typer.Option("--env", help=f"one of {', '.join(ENVIRONMENTS)}")] = "operator",
    seed: Annotated[int, typer.Option(help="the same seed is the same tasks")] = 1,
    practice: Annotated[int | None, typer.Option(min=1, help="tasks of each family to gather experience on")] = None,
    test: Annotated[int | None, typer.Option(min=1, help="tasks of each family to compare the arms on")] = None,
    ks: Annotated[str, typer.Option("--k", help="the sizes of the slate to compare, 0 to 50")] = "0,1,2,4,8",
    out_dir: Annotated[Path, typer.Option("--out", help="where the numbers and the picture go")] = Path("out"),
) -> None:
    """Compare an agent with and without memory, task by task: first the prediction, then the verdict."""
    logs.quiet()
    if environment not in ENVIRONMENTS:
        raise typer.BadParameter(f"no environment {environment!r}; there are {', '.join(ENVIRONMENTS)}")
    wanted = {"seed": seed, "practice": practice, "test": test, "ks": _slate_sizes(ks)}
    given = {name: value for name, value in wanted.items() if value is not None}
    run(run_experiment(Settings(), environment, given, out_dir))


def _slate_sizes(text: str) -> list[int]:
    sizes = [int(part) if part.strip().isdecimal() else -1 for part in text.split(",")]
    if any(not 0 <= size <= LARGEST_SLATE for size in sizes):
        raise typer.BadParameter(f"{text!r} is no list of numbers from 0 to {LARGEST_SLATE}", param_hint="--k")
    return sizes
