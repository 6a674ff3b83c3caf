"""``python -m examples.experiment``: compares an agent with and without memory, task by task."""

from pathlib import Path
from typing import Annotated

import typer

from app import logs
from app.settings import Settings
from app.terminal.run_to_end import run_to_end as run
from examples.experiment.main import ENVIRONMENTS
from examples.experiment.main import experiment as run_experiment

LARGEST_SLATE = 50


def experiment(  # noqa: PLR0913, PLR0917 - each is an option of the command line
    environment: Annotated[str, typer.Option("--env", help=f"one of {', '.join(ENVIRONMENTS)}")] = "operator",
    seed: Annotated[int, typer.Option(help="the same seed gives the same tasks")] = 1,
    practice: Annotated[int | None, typer.Option(min=1, help="tasks of each family for practice")] = None,
    test: Annotated[int | None, typer.Option(min=1, help="tasks of each family for the comparison")] = None,
    ks: Annotated[str, typer.Option("--k", help="slate sizes to compare, 0 to 50")] = "0,1,2,4,8",
    out_dir: Annotated[Path, typer.Option("--out", help="folder for the numbers and the picture")] = Path("out"),
) -> None:
    """Compare an agent with and without memory, task by task: first the prediction, then the verdict."""
    logs.quiet()
    if environment not in ENVIRONMENTS:
        raise typer.BadParameter(f"no environment {environment!r}; there are {', '.join(ENVIRONMENTS)}")
    wanted = {"seed": seed, "practice": practice, "test": test, "ks": _slate_sizes(ks)}
    options = {name: value for name, value in wanted.items() if value is not None}
    run(run_experiment(Settings(), environment, options, out_dir))


def _slate_sizes(text: str) -> list[int]:
    sizes = [int(part) if part.strip().isdecimal() else -1 for part in text.split(",")]
    if any(not 0 <= size <= LARGEST_SLATE for size in sizes):
        raise typer.BadParameter(f"{text!r} is no list of numbers from 0 to {LARGEST_SLATE}", param_hint="--k")
    return sizes
