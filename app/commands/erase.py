"""Commands ``casebank purge`` and ``erase-again``, which erase all data of a user for good, and show receipts."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.table import Table
from rich.text import Text

from app import logs
from app.backup.erase_again import erase_again, read_receipts
from app.erasure import command as erasure
from app.runtime import owner_url
from app.settings import Settings
from app.terminal.command_line import MaybeUser, checked, doubt_name, parts, patient
from app.terminal.plain_console import notice, out, plain_console
from app.terminal.run_to_end import run_to_end as run
from app.terminal.run_to_end import runs_to_end
from app.terminal.which_database import tell_database
from retrieval.database.database import Database
from writer.rights.erase import digest as name_digest
from writer.rights.signature import SIGNATURE, SignatureBroken, Signer, documents, verified

WIDTH = 100
"""Width of the tables in characters, so that a digest has a line of its own on any terminal."""


def print_receipt(receipt: dict[str, Any], *, as_json: bool) -> None:
    """Prints the receipt, as tables or as the signed JSON."""
    out.print(json.dumps(receipt) if as_json else as_table(receipt), soft_wrap=as_json)


def as_table(receipt: dict[str, Any]) -> Group:
    """Returns the erased rows by table, and the state of each place."""
    if SIGNATURE not in receipt:
        return Group(Text(f"an erasure that broke off, or of an older version: repeat the purge\n{receipt}"))
    rows = Table(title="Erasure receipt", min_width=WIDTH)
    rows.add_column("table")
    rows.add_column("rows erased", justify="right")
    rows.add_column("rows left", justify="right")
    for table, count in receipt["rows"].items():
        rows.add_row(table, str(count), str(receipt["residue"][table]))
    places = Table(min_width=WIDTH)
    for name in ("place", "", "what", "until"):
        places.add_column(name, overflow="fold")
    for place in receipt["places"]:
        places.add_row(place["place"], place["state"], place["what"], place.get("until", ""))
    foot = f"sha256 {receipt['user_sha256']}\n{receipt['erased_at']}, {receipt['keys_destroyed']} key destroyed"
    return Group(rows, places, Text(f"{foot}\nsigned by {receipt['signature']['public_key']}"))


def check(settings: Settings, receipts: str) -> str:
    """Returns a line for each receipt: its signer, and whether that is this installation.

    Raises:
        SignatureBroken: a receipt was changed after its signature, or has none.
    """
    has_key = settings.master_key is not None or (settings.home / "secrets.json").exists()  # no key is made up here
    own = Signer.of(settings.master_key_bytes).public_key if has_key else None
    others = "which is not this installation's key: compare it with the one that you noted"
    signers = [verified(each) for each in documents(receipts)]
    return "\n".join(f"signed by this installation, {s}" if s == own else f"signed by {s}, {others}" for s in signers)


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
        str | None, typer.Option("--digest", help="sha256 of the user's name in hex, for --receipt")
    ] = None,
    verify: Annotated[
        Path | None, typer.Option("--verify", help="erase nothing; check the signatures of the receipts in this file")
    ] = None,
) -> None:
    """Erase all data of a user for good and print the receipt."""
    logs.quiet()
    if verify is not None:
        try:
            out.print(check(Settings(), verify.read_text(encoding="utf-8")), soft_wrap=True)
        except (SignatureBroken, OSError, UnicodeError) as error:
            notice(str(error), style="red")
            raise typer.Exit(1) from None
        return
    if receipt:
        _print_receipts(digest.lower() if digest else name_digest(checked(user or "")), as_json=as_json)
        return
    if user is not None or not scrub:
        checked(user or "")
    tell_database(patient())
    if user is not None and not yes:
        run(_doubt(user))
        typer.confirm(f"Erase everything of {user!r}? This cannot be undone.", abort=True, err=True)
    say = plain_console(stderr=True, style="dim")
    signed, completed = run(erasure.purge(patient(), user, scrubs=scrub, progress=say.print))
    if signed is None:
        out.print(f"scrubbed; {completed} receipts say so")
        return
    print_receipt(signed, as_json=as_json)
    if yes and not any((*signed["rows"].values(), *signed["renamed"].values())):
        doubt_name()
    if not signed["clean"]:
        raise typer.Exit(1)


async def _doubt(user: str) -> None:
    async with parts(only_reads=True) as runtime:
        await doubt_unknown(runtime.database, user)


async def doubt_unknown(database: Database, user: str) -> None:
    """Warns that the user's name may be misspelt, if no row belongs to the user or names the user."""
    if not await erasure.is_known(database, user):
        doubt_name()


def _print_receipts(user_sha256: str, *, as_json: bool) -> None:
    receipts = run(erasure.receipts(patient(), user_sha256))
    for each in receipts:
        print_receipt(each, as_json=as_json)
    if not receipts:
        notice("no erasure of that name is known here", style="red")
        raise typer.Exit(1)


@runs_to_end
async def again(
    receipts: Annotated[
        list[Path], typer.Argument(help="files with receipts (purge --json) of erasures after the backup")
    ],
) -> None:
    """Erase users whom a restored database brought back; `restore` does it by itself."""
    logs.quiet()
    settings = Settings()
    tell_database(settings)
    async with owner_url(settings) as url:
        count = len(await erase_again(settings, url, read_receipts(receipts)))
    out.print(f"{count} users erased again")
    if count:
        out.print("deleted rows of these are in the files once more: casebank purge --scrub removes them")
