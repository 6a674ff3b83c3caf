"""``casebank demo``: what memory changes, seen in a scripted agent."""

from pathlib import Path
from typing import Annotated

import typer

from app import logs
from app.demo.main import demo as run_demo
from app.settings import Settings
from app.terminal.run_to_end import run_to_end as run


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
