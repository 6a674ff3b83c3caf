"""``casebank backup`` and ``restore``: the embedded database in a folder, and back."""

from pathlib import Path
from typing import Annotated

import typer

from app import logs
from app.backup.backup import backup as make_backup
from app.backup.backup import restore as restore_backup
from app.settings import Settings
from app.terminal.plain_console import out
from app.terminal.run_to_end import runs_to_end
from app.terminal.which_database import tell_database


@runs_to_end
async def backup(folder: Annotated[Path, typer.Argument(help="a new folder for the dump and its manifest")]) -> None:
    """Back up the embedded database into a folder, without the master key; the service may run meanwhile."""
    logs.quiet()
    made = await make_backup(Settings(), folder)
    out.print(f"schema {made.revision}, sha256 {made.sha256}")
    out.print(f"keep the master key apart: sealed texts open with it alone: {made.master_key}")


@runs_to_end
async def restore(
    folder: Annotated[Path, typer.Argument(help="folder that `casebank backup` wrote")],
    replace: Annotated[bool, typer.Option("--replace", help="delete the bank that is in place")] = False,
    receipt: Annotated[
        list[Path] | None,
        typer.Option(
            help="file with a receipt (purge --json) of an erasure after the backup that this machine does not know"
        ),
    ] = None,
) -> None:
    """Restore a backup and erase again the users who were erased since; the service must not run."""
    logs.quiet()
    settings = Settings()
    tell_database(settings)
    manifest, users, erased_again = await restore_backup(settings, folder, receipt or [], replace=replace)
    out.print(f"{users} users are back as of {manifest.created_at}; {erased_again} erased again")
    if erased_again:
        out.print("deleted rows of these are in the files once more: casebank purge --scrub removes them")
