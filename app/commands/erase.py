"""``casebank purge`` and ``erase-again``: erase all data of a user for good."""

from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any

import typer

from app import logs
from app.backup.erase_again import erase_again, read_receipts
from app.erasure import command as erasure
from app.erasure.show import check, print_receipt
from app.runtime import owner_url
from app.settings import Settings
from app.terminal.command_line import MaybeUser, checked, patient
from app.terminal.plain_console import plain_console
from app.terminal.run_to_end import run_to_end as run
from app.terminal.which_database import tell_database
from writer.rights.elsewhere import digest as name_digest
from writer.rights.signature import SignatureBroken

out = plain_console()


def purge(  # noqa: PLR0913, PLR0917 - each is an option of the command line
    user: MaybeUser = None,
    yes: Annotated[bool, typer.Option("--yes", help="do not ask for confirmation")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print the receipt as JSON")] = False,
    scrub: Annotated[
        bool,
        typer.Option(
            "--scrub", help="then rewrite the tables and drop the log; without --user: for all earlier erasures"
        ),
    ] = False,
    receipt: Annotated[
        bool, typer.Option("--receipt", help="erase nothing; print the receipts of earlier erasures")
    ] = False,
    digest: Annotated[
        str | None, typer.Option("--digest", help="with --receipt: sha256 of the user's name, in hex")
    ] = None,
    verify: Annotated[
        Path | None, typer.Option("--verify", help="erase nothing; check the signature of the receipt in this file")
    ] = None,
) -> None:
    """Erase all data of a user for good and print the receipt."""
    logs.quiet()
    if verify is not None:
        try:
            out.print(check(Settings(), verify.read_text(encoding="utf-8")), soft_wrap=True)
        except (SignatureBroken, OSError, UnicodeError) as error:
            plain_console(stderr=True).print(f"casebank: {error}", style="red")
            raise typer.Exit(1) from None
        return
    if receipt:
        _print_receipts(erasure.receipts(patient(), digest or name_digest(checked(user or ""))), as_json=as_json)
        return
    if user is not None or not scrub:
        checked(user or "")
    if user is not None and not yes:
        if not run(erasure.is_known(patient(), user)):
            _doubt()
        typer.confirm(f"Erase everything of {user!r}? This cannot be undone.", abort=True)
    say = plain_console(stderr=True, style="dim")
    tell_database(patient())
    done = run(erasure.purge(patient(), user, scrubs=scrub, progress=say.print))
    if done.receipt is None:
        out.print(f"scrubbed; {done.receipts} receipts say so")
        return
    print_receipt(out, done.receipt, as_json=as_json)
    if yes and erasure.found_nothing(done.receipt):
        _doubt()
    if not done.receipt["clean"]:
        raise typer.Exit(1)


def _doubt() -> None:
    """Warns that the user's name may be misspelt; its erasure is valid all the same, and bars the name's tokens."""
    text = "casebank: this user has no rows: is the name right?"
    plain_console(stderr=True, soft_wrap=True).print(text, style="yellow")


def _print_receipts(found: Coroutine[object, None, list[dict[str, Any]]], *, as_json: bool) -> None:
    receipts = run(found)
    for each in receipts:
        print_receipt(out, each, as_json=as_json)
    if not receipts:
        plain_console(stderr=True).print("casebank: no erasure of that name is known here", style="red")
        raise typer.Exit(1)


def again(
    receipts: Annotated[
        list[Path], typer.Argument(help="files with receipts (purge --json) of erasures after the backup")
    ],
) -> None:
    """Erase users whom a restored database brought back; `restore` does it by itself."""
    logs.quiet()

    async def work() -> int:
        settings = Settings()
        tell_database(settings)
        async with owner_url(settings) as url:
            return await erase_again(url, read_receipts(receipts))

    out.print(f"{run(work())} users erased again")
