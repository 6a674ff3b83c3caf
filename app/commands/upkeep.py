"""``casebank prune``, ``reembed``, ``reseal``, ``requeue`` and ``rotate-key``: upkeep of all banks."""

import json
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer
from tqdm import tqdm

from app.commands.erase import doubt_unknown
from app.commands.tokens import OPERATOR_NAME
from app.terminal.command_line import checked, named, parts
from app.terminal.plain_console import notice, out
from app.terminal.run_to_end import run_to_end as run
from app.terminal.run_to_end import runs_to_end
from retrieval.tables.cases import cases, inserted_memories
from retrieval.tables.memories import memories
from retrieval.tables.procedures import reflections
from retrieval.tables.sessions import sessions
from writer.author import Author
from writer.errors import NotTheOwner
from writer.knowledge.shared import embed_shared
from writer.privacy.rotation import Rotation, rotate
from writer.queue import statements
from writer.upkeep.hnsw import index_all
from writer.upkeep.prune import prune_all
from writer.upkeep.reembed import reembed_all
from writer.upkeep.reseal import reseal_all


@runs_to_end
async def prune() -> None:
    """Remove cases and other rows over the limits of each profile, and index the vectors of very large banks."""
    async with parts() as runtime:
        pruned = await prune_all(runtime.database, kept=timedelta(days=runtime.settings.pruned_kept_days))
        await index_all(runtime.database)
    out.print(f"cases pruned from their banks: {pruned['soft']}; deleted for good: {pruned['hard']}")


@runs_to_end
async def reembed() -> None:
    """Embed every bank again with the embedder of the settings; each bank switches when its vectors are complete."""
    async with parts() as runtime:
        with tqdm(unit=" cases", desc="reembed", disable=None) as bar:
            done = await reembed_all(runtime.database, runtime.embedder, runtime.keyring, progress=bar.update)
        try:
            operator = Author(OPERATOR_NAME, "casebank reembed", datetime.now(UTC))
            await embed_shared(runtime.database, runtime.embedder, operator)
        except NotTheOwner as error:
            notice(f"shared knowledge is left as it is: {error}")
    out.print(f"{done} cases embedded")


@runs_to_end
async def reseal() -> None:
    """Rewrite earlier rows as CASEBANK_SEAL says: texts sealed with the users' keys, or in plain."""
    async with parts() as runtime:
        with tqdm(unit=" rows", desc="reseal", disable=None) as bar:
            done = await reseal_all(runtime.database, runtime.keyring, progress=bar.update)
    out.print(f"{done} rows resealed")


@runs_to_end
async def requeue(
    user: Annotated[
        str | None,
        typer.Option(
            "--user", callback=named, help="one user alone; -: read the name from standard input; unset: all users"
        ),
    ] = None,
) -> None:
    """Queue dead cases, lessons and sessions, memories without a vector, and those inserted by SQL, again."""
    if user is not None:
        checked(user)
    queues = (cases, inserted_memories, sessions, reflections, memories)
    async with parts() as runtime:
        async with runtime.database.as_worker() as connection:
            queued = [len((await connection.execute(statements.requeue_dead(user, of))).all()) for of in queues]
        if user is not None and not any(queued):
            await doubt_unknown(runtime.database, user)
    of_cases, inserted, *others = queued
    names = "{} sessions", "lessons of {}", "{} memories without a vector"
    also = [name.format(number) for name, number in zip(names, others, strict=True) if number]
    out.print(", ".join([f"{of_cases + inserted} cases queued again", *also]))


def rotate_key(
    yes: Annotated[bool, typer.Option("--yes", help="do not ask for confirmation")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print the receipt as JSON")] = False,
) -> None:
    """Wrap every user's key with CASEBANK_MASTER_KEY in place of CASEBANK_MASTER_KEY_OLD; may be repeated."""
    if not yes:
        typer.confirm("Does every service, worker and job hold both keys by now?", abort=True, err=True)

    async def work() -> Rotation:
        async with parts() as runtime:
            with tqdm(unit=" users", desc="rotate-key", disable=None) as bar:
                return await rotate(runtime.database, runtime.keyring.masters, bar.update)

    done = run(work())
    if as_json:
        typer.echo(json.dumps(done.as_dict()))
    else:
        if not done.now:
            out.print("every key is wrapped already; the receipt of that rotation:")
        for name, value in done.as_dict().items():
            text = ", ".join(value) if isinstance(value, list) else value
            out.print(f"{name.replace('_', ' ')}: {text}")
        old = "CASEBANK_MASTER_KEY_OLD"
        unopened = f"{done.left} users' keys do not open: add the key that wrapped them to {old}, and repeat"
        out.print(unopened if done.left else f"{old} is only needed for earlier backups now")
    if done.left:
        raise typer.Exit(1)
