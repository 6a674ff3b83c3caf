"""``casebank prune``, ``reembed``, ``reseal``, ``requeue``: what keeps every bank in order."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer
from rich.console import Console
from tqdm import tqdm

from app.commands.knowledge import embed_shared_too
from app.terminal.command_line import named, parts
from app.terminal.run_to_end import run_to_end as run
from retrieval.tables.cases import cases
from retrieval.tables.memories import memories
from retrieval.tables.sessions import sessions
from writer.upkeep.hnsw import index_all
from writer.upkeep.prune import Pruned, prune_all
from writer.upkeep.reembed import reembed_all
from writer.upkeep.reseal import reseal_all
from writer.worker import queue

out = Console()


def prune() -> None:
    """Take out of every bank what its window, time limit and worth leave no room for; index what is very large."""

    async def work() -> Pruned:
        async with parts() as runtime:
            kept = timedelta(days=runtime.settings.pruned_kept_days)
            pruned = await prune_all(runtime.database, now=datetime.now(UTC), kept=kept)
            await index_all(runtime.database)
            return pruned

    pruned = run(work())
    out.print(f"{pruned.soft} cases taken out of their banks, {pruned.hard} deleted for good")


def reembed() -> None:
    """Bring every bank over to the embedder in the settings; each one switches at once when it is done."""

    async def work() -> int:
        async with parts() as runtime:
            with tqdm(unit=" cases", desc="reembed", disable=None) as bar:
                done = await reembed_all(runtime.database, runtime.embedder, runtime.keyring, progress=bar.update)
                await embed_shared_too(runtime)
                return done

    out.print(f"{run(work())} cases embedded")


def reseal() -> None:
    """Bring what was written before over to CASEBANK_SEAL: words sealed with the users' keys, or in plain."""

    async def work() -> int:
        async with parts() as runtime:
            with tqdm(unit=" rows", desc="reseal", disable=None) as bar:
                return await reseal_all(runtime.database, runtime.keyring, progress=bar.update)

    out.print(f"{run(work())} rows resealed")


def requeue(
    user: Annotated[
        str | None,
        typer.Option("--user", callback=named, help="only this user's; -: from standard input; unset: everybody's"),
    ] = None,
) -> None:
    """Queue the dead cases again, the sessions that could not be read, and the memories without a vector."""

    async def work() -> tuple[int, int]:
        async with parts() as runtime, runtime.database.as_worker() as connection:
            queues = (cases, sessions, memories)
            dead = [(await connection.execute(queue.requeue_dead(user, of))).all() for of in queues]
        return len(dead[0]), len(dead[1])

    of_cases, of_sessions = run(work())
    out.print(f"{of_cases} cases queued again" + (f", {of_sessions} sessions" if of_sessions else ""))
