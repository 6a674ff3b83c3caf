"""``casebank audit``: verifies that the audit's entries were not changed, and deletes old ones."""

import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer
from rich.table import Table

from app.commands.erase import doubt_unknown
from app.settings.numbers import CENTURY_DAYS
from app.terminal.command_line import MaybeUser, checked, doubt_name, parts
from app.terminal.plain_console import out
from app.terminal.run_to_end import runs_to_end
from retrieval.database.database import Database
from retrieval.errors import UserErased
from writer.audit.sealing import AuditBroken, prune_audit
from writer.audit.tombstone_chain import Tombstones, verify_tombstones
from writer.audit.verify import Verified, everybody, read_erasures, verify_user

commands = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Verify that the audit was not changed, or delete old entries.",
)


All = Annotated[bool, typer.Option("--all", help="all users, and the erasures")]


@commands.command()
@runs_to_end
async def verify(
    user: MaybeUser = None,
    everyone: All = False,
    as_json: Annotated[bool, typer.Option("--json", help="print the result as JSON lines")] = False,
) -> None:
    """Verify the chain of a user's entries, or all chains; exit with status 1 if an entry was changed."""
    passed_over = _passed_over(user, everyone=everyone)
    async with parts(only_reads=True) as runtime:
        database, results = runtime.database, list[Verified]()
        chosen, erasures = await _chosen(database, user), await read_erasures(database)
        for each in chosen:
            with suppress(*passed_over):
                results.append(await verify_user(database, each, erasures))
        stones = await verify_tombstones(database) if everyone else None
    _show(results, stones, as_json=as_json)
    if user is not None and not results[0].seq and not results[0].fault:
        doubt_name("entry")
    if any(each.fault for each in results) or (stones is not None and stones.fault):
        raise typer.Exit(1)


@commands.command()
@runs_to_end
async def prune(
    days: Annotated[
        int, typer.Option("--keep-days", min=1, max=CENTURY_DAYS, help="age in days above which entries are deleted")
    ],
    user: MaybeUser = None,
    everyone: All = False,
) -> None:
    """Delete old entries; the rest can still be verified. A chain that was changed is left alone."""
    passed_over = _passed_over(user, everyone=everyone)
    before, gone, broken = datetime.now(UTC) - timedelta(days=days), 0, 0
    async with parts() as runtime:
        for each in await _chosen(runtime.database, user):
            with suppress(*passed_over):
                try:
                    gone += await prune_audit(runtime.database, each, before)
                except AuditBroken:
                    broken += 1
        if user is not None and not gone + broken:
            await doubt_unknown(runtime.database, user)
    out.print(f"{gone} entries deleted")
    if broken:
        out.print(f"{broken} chains were changed and are left alone: casebank audit verify")
        raise typer.Exit(1)


async def _chosen(database: Database, user: str | None) -> list[str]:
    """Returns the user that was named, or, if none was, everybody who may have a chain."""
    if user is not None:
        return [checked(user)]
    async with database.as_worker() as connection:
        return [row.user_sub for row in await connection.execute(everybody())]


def _passed_over(user: str | None, *, everyone: bool) -> tuple[type[UserErased], ...]:
    """Returns the error of a user who was erased after the list of all users was read; none for a named user.

    Raises:
        typer.BadParameter: the command names one user and all, or neither.
    """
    if (user is None) != everyone:
        raise typer.BadParameter("give either --user or --all")
    return (UserErased,) if everyone else ()


def _show(results: list[Verified], stones: Tombstones | None, *, as_json: bool) -> None:
    """Prints the result for each user's chain, and for the chain of the erasures if it was verified."""
    if as_json:
        for each in results:
            fault = each.fault and {
                "seq": each.fault.seq,
                "entry_id": None if each.fault.entry_id is None else str(each.fault.entry_id),
                "what": each.fault.what,
            }
            entries = {"user": each.user_sub, "entries": each.seq, "hash": each.hash.hex(), "sealed": each.sealed_seq}
            typer.echo(json.dumps({**entries, "pruned": each.pruned[0], "fault": fault}))
        if stones is not None:
            erasures = {"erasures": stones.seq, "hash": stones.hash.hex(), "sealed": stones.sealed_seq}
            typer.echo(json.dumps({**erasures, "fault": stones.fault and {"what": stones.fault}}))
        return
    table = Table("chain", "entries", "sealed", "", "first entry that was changed", min_width=60)
    for each in results:
        first = f"entry {each.fault.seq} ({each.fault.entry_id}): {each.fault.what}" if each.fault else ""
        table.add_row(each.user_sub, str(each.seq), str(each.sealed_seq), "BAD" if each.fault else "ok", first)
    if stones is not None:
        state = "BAD" if stones.fault else "ok"
        table.add_row("(erasures)", str(stones.seq), str(stones.sealed_seq), state, stones.fault or "")
    out.print(table)
