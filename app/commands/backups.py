"""``casebank backup`` and ``restore``: the embedded database in a folder, and back."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from app import logs
from app.backup.backup import backup as make_backup
from app.backup.backup import restore as restore_backup
from app.settings import Settings
from app.terminal.run_to_end import run_to_end as run

out = Console()


def backup(folder: Annotated[Path, typer.Argument(help="a new folder for the dump and its manifest")]) -> None:
    """Write the embedded database into a folder, while the service may go on; the master key is not in it."""
    logs.quiet()
    made = run(make_backup(Settings(), folder))
    out.print(f"schema {made.revision}, sha256 {made.sha256}", markup=False)
    out.print(f"keep the master key apart: what is sealed opens only with {made.master_key}", markup=False)


def restore(
    folder: Annotated[Path, typer.Argument(help="as `casebank backup` left it")],
    replace: Annotated[bool, typer.Option("--replace", help="the bank that is there goes")] = False,
    receipt: Annotated[
        list[Path] | None, typer.Option(help="of an erasure since (purge --json), if this machine knows nothing of it")
    ] = None,
) -> None:
    """Put a backup in the place of the bank, less everybody who was erased since; the service must not run."""
    logs.quiet()
    done = run(restore_backup(Settings(), folder, receipt or [], replace=replace))
    out.print(f"{done.users} users are back as of {done.manifest.created_at}; {done.erased_again} erased again")
