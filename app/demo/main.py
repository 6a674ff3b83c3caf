"""Runs the demo against its own service, which it starts like `casebank serve` and stops at the end."""

import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from shutil import which

from app.demo.operator.house import House
from app.demo.operator.operator import STEP_BUDGET
from app.demo.report import DemoReport, print_report
from app.demo.run import AGENT, Addresses, run_stream
from app.processes.own_service import own_service
from app.runtime import owner_url
from app.settings import Settings
from app.terminal.plain_console import plain_console


async def demo(settings: Settings, *, tasks: int, seeds: Sequence[int], out_dir: Path) -> None:
    """Runs each house's tasks in the four arms, each house as a user of its own; writes and prints the report."""
    console = plain_console()
    users = [f"demo-{datetime.now(UTC):%Y%m%d-%H%M%S}-{seed}" for seed in seeds]
    async with owner_url(settings) as scratch_dsn, own_service(settings) as service:
        places = [Addresses(service.base_url, service.headers(user), scratch_dsn) for user in users]
        houses = [House(seed, tasks) for seed in seeds]
        pairs = zip(places, houses, strict=True)
        streams = [await run_stream(place, house, console=console) for place, house in pairs]
    report = DemoReport(STEP_BUDGET, streams)
    print_report(report, console)
    console.print(f"  {report.write(out_dir)} has all numbers")
    if find_spec("matplotlib"):
        from app.demo.plot import plot  # noqa: PLC0415 (matplotlib is an extra)

        console.print(f"  {plot(report, out_dir)} shows them")
    command = own_command(Path(sys.executable), os.environ.get("PATH"), Path.cwd())
    console.print(next_commands(command, users[0]), soft_wrap=True)


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
