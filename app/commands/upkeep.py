"""``casebank prune``, ``reembed``, ``reseal``, ``requeue``: upkeep of all banks."""

from datetime import timedelta
from typing import Annotated

import typer
from tqdm import tqdm

from app.commands.knowledge import embed_shared_too
from app.terminal.command_line import named, parts
from app.terminal.plain_console import plain_console
from app.terminal.run_to_end import run_to_end as run
from retrieval.tables.cases import cases, inserted_memories
from retrieval.tables.memories import memories
from retrieval.tables.procedures import reflections
from retrieval.tables.sessions import sessions
from writer.queue import statements
from writer.upkeep.hnsw import index_all
from writer.upkeep.prune import Pruned, prune_all
from writer.upkeep.reembed import reembed_all
from writer.upkeep.reseal import reseal_all

out = plain_console()


def prune() -> None:
    """Remove cases and other rows over the limits of each profile, and index the vectors of very large banks."""

    async def work() -> Pruned:
        async with parts() as runtime:
            kept = timedelta(days=runtime.settings.pruned_kept_days)
            pruned = await prune_all(runtime.database, kept=kept)
            await index_all(runtime.database)
            return pruned

    pruned = run(work())
    out.print(f"cases pruned from their banks: {pruned.soft}; deleted for good: {pruned.hard}")


def reembed() -> None:
    """Embed every bank again with the embedder of the settings; each bank switches when its vectors are complete."""

    async def work() -> int:
        async with parts() as runtime:
            with tqdm(unit=" cases", desc="reembed", disable=None) as bar:
                done = await reembed_all(runtime.database, runtime.embedder, runtime.keyring, progress=bar.update)
                await embed_shared_too(runtime)
                return done

    out.print(f"{run(work())} cases embedded")


def reseal() -> None:
    """Rewrite earlier rows as CASEBANK_SEAL says: texts sealed with the users' keys, or in plain."""

    async def work() -> int:
        async with parts() as runtime:
            with tqdm(unit=" rows", desc="reseal", disable=None) as bar:
                return await reseal_all(runtime.database, runtime.keyring, progress=bar.update)

    out.print(f"{run(work())} rows resealed")


def requeue(
    user: Annotated[
        str | None,
        typer.Option(
            "--user", callback=named, help="one user alone; -: read the name from standard input; unset: all users"
        ),
    ] = None,
) -> None:
    """Queue dead cases, lessons and sessions, memories without a vector, and those inserted by SQL, again."""

    async def work() -> list[int]:
        async with parts() as runtime, runtime.database.as_worker() as connection:
            queues = (cases, inserted_memories, sessions, reflections, memories)
            return [len((await connection.execute(statements.requeue_dead(user, of))).all()) for of in queues]

    of_cases, inserted, *others = run(work())
    names = "{} sessions", "lessons of {}", "{} memories without a vector"
    also = [name.format(number) for name, number in zip(names, others, strict=True) if number]
    out.print(", ".join([f"{of_cases + inserted} cases queued again", *also]))
