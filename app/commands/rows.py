"""``casebank export`` and ``backfill``: write a user's rows out of the bank, and old runs into it."""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from tqdm import tqdm

from app.terminal.command_line import Agent, User, checked, doubt_name, parts
from app.terminal.plain_console import out
from app.terminal.run_to_end import runs_to_end
from writer.author import Author
from writer.retain.backfill import backfill as backfill_runs
from writer.rights.export import export as export_rows


@runs_to_end
async def export(user: User) -> None:
    """Export all data of a user to standard output, one JSON object a line."""
    found = False
    async with parts(only_reads=True) as runtime:
        async for row in export_rows(runtime.database, runtime.keyring, checked(user)):
            found = True
            sys.stdout.write(json.dumps(row) + "\n")
    if not found:
        doubt_name()


@runs_to_end
async def backfill(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="old runs: one JSON object a line")],
    user: User,
    agent: Agent,
) -> None:
    """Retain old runs from a file; a repeat adds only what is missing."""
    author = Author(checked(user), "backfill", datetime.now(UTC))
    with file.open("rb") as lines, tqdm(unit=" runs", desc=file.name, disable=None) as bar:
        async with parts() as runtime:
            done = await backfill_runs(runtime.database, runtime.keyring, lines, author, agent, progress=bar.update)
    out.print(f"{done.read} lines: {done.retained} retained, {done.known} known already, {len(done.refused)} refused")
    if done.passed_over:
        out.print(f"{done.passed_over} rows of an export that are no cases passed over")
    for line, reason in done.refused:
        out.print(f"  line {line}: {reason}")
    if done.refused:
        raise typer.Exit(1)
