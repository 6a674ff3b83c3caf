"""``casebank demo``: compares memories by the runs of a scripted agent, each house of tasks as a user of its own.

The demo starts its own service like `casebank serve`, and stops it at the end.
"""

import os
import sys
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from shutil import which
from typing import Annotated

import typer

from app import logs
from app.demo.operator.house import House
from app.demo.operator.operator import STEP_BUDGET
from app.demo.report import DemoReport, print_report
from app.demo.run import AGENT, run_stream
from app.processes.own_service import own_service
from app.runtime import owner_url
from app.settings import Settings
from app.terminal.plain_console import out
from app.terminal.run_to_end import runs_to_end
from app.terminal.which_database import tell_database


@runs_to_end
async def demo(
    tasks: Annotated[int, typer.Option(min=10, help="number of tasks of each house")] = 120,
    seed: Annotated[list[int], typer.Option(help="seed of a house; may be repeated")] = [31],  # noqa: B006 (typer's way)
    out_dir: Annotated[
        Path, typer.Option(file_okay=False, writable=True, help="folder for the plot and the numbers")
    ] = Path("out"),
) -> None:
    """Run a scripted database operator with no memory, keyword memory and casebank, and compare them."""
    logs.quiet()
    out_dir.mkdir(parents=True, exist_ok=True)  # a folder that cannot be is told before the runs
    settings = Settings()
    tell_database(settings)
    houses = {f"demo-{datetime.now(UTC):%Y%m%d-%H%M%S}-{each}": House(each, tasks) for each in seed}
    async with owner_url(settings) as scratch_dsn, own_service(settings) as service:
        streams = []
        for user, house in houses.items():
            async with service.client(user) as client:
                streams.append(await run_stream(client, scratch_dsn, house, console=out))
    report = DemoReport(STEP_BUDGET, streams)
    print_report(report, out)
    out.print(f"  {report.write(out_dir)} has all numbers")
    if find_spec("matplotlib"):
        from app.demo.plot import plot  # noqa: PLC0415 (matplotlib is an extra)

        out.print(f"  {plot(report, out_dir)} shows them")
    command = own_command(Path(sys.executable), os.environ.get("PATH"), Path.cwd())
    out.print(next_commands(command, next(iter(houses))), soft_wrap=True)


def own_command(python: Path, path: str | None, folder: Path) -> str:
    """Returns the words that start this casebank: its name if the shell finds it, or its path, or the module."""
    script, named = python.with_name("casebank"), which("casebank", path=path)
    if named is not None and Path(named).resolve() == script.resolve():
        return "casebank"
    if not script.exists():
        return f"{quote(str(python))} -P -m app.cli"
    return quote(str(script.relative_to(folder) if script.is_relative_to(folder) else script))


def next_commands(command: str, user: str) -> str:
    """Returns the commands to go on with, each with its effect; ``user`` is that of the first house."""
    effects = {
        "serve": "starts the service again; its API is at http://127.0.0.1:8700/docs",
        f"console --user {user}": "then opens the overview of this bank, http://127.0.0.1:8700/console",
        f"token --user {user}": "prints a token for this bank",
        f"export --user {user}": "prints the whole bank as JSON lines",
        f"policy show --user {user} --agent {AGENT}": "shows what was learned from this bank",
        f"purge --user {user}": "deletes the bank, with a receipt",
    }
    return "\n".join(
        ["\nNext commands:", *(f"  {command} {words}\n      {effect}" for words, effect in effects.items())]
    )
