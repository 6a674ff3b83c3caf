"""``casebank demo``: compares memories by the runs of a scripted agent."""

from pathlib import Path
from typing import Annotated

import typer

from app import logs
from app.demo.main import demo as run_demo
from app.settings import Settings
from app.terminal.run_to_end import run_to_end as run
from app.terminal.which_database import tell_database


def demo(
    tasks: Annotated[int, typer.Option(min=10, help="number of tasks of each house")] = 120,
    seed: Annotated[list[int], typer.Option(help="seed of a house; may be repeated")] = [31],  # noqa: B006 (typer's way)
    out_dir: Annotated[Path, typer.Option(help="folder for the plot and the numbers")] = Path("out"),
) -> None:
    """Run a scripted database operator with no memory, keyword memory and casebank, and compare them."""
    logs.quiet()
    settings = Settings()
    tell_database(settings)
    run(run_demo(settings, tasks=tasks, seeds=seed, out_dir=out_dir))
