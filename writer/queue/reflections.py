"""Handles runs whose reward showed a failure after the worker had finished them: revises the procedures they used."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import func, select, update

from retrieval.ports import Embedder, embed_each
from retrieval.tables.procedures import reflections
from retrieval.telemetry import stage
from writer.analysis.placeholders import without_placeholders
from writer.procedures import versions
from writer.procedures.ports import Source
from writer.profiles import lock_profile
from writer.queue.case import ClaimedCase, Work, cases_of, used_by
from writer.queue.lease import Lease, is_held
from writer.queue.queue import Queue
from writer.queue.teaching import Teaching


@dataclass(slots=True)
class ReflectionHandler:
    """Revises the procedures that failed runs used, as the worker does for a run that is retained as failed."""

    queue: Queue
    embedder: Embedder
    teaching: Teaching
    pgvector: bool

    async def handle(self, leases: Sequence[Lease]) -> None:
        """Revises the procedures that each leased run used, one by one; the worker calls it with each batch.

        Raises:
            DatabaseUnavailable: some of the runs are not handled.
        """
        with stage("work.reflect"):
            for lease in leases:
                await self.queue.attempt([lease], self._reflect(lease))

    async def _reflect(self, lease: Lease) -> str:
        """Learns from the run anew, and stores the revisions alone. Returns the end for the log."""
        database, user_sub = self.queue.database, lease.user_sub
        async with database.as_user(user_sub, lease.claimed_at) as connection:
            row = (await connection.execute(cases_of(user_sub, [lease.row_id]))).one_or_none()
            if row is None:
                return "gone"
            case = ClaimedCase(*row)
            work = Work(lease, case, used=await used_by(connection, user_sub, case))
        if work.used:
            await self.teaching.open(work)
            await self.teaching.teach(work, self.queue.renew)
        revisions = work.taught.revisions
        triggers = [without_placeholders(draft.trigger) for _, draft in revisions]
        vectors = await embed_each(self.embedder, triggers) if triggers else []
        async with database.as_user(user_sub, lease.claimed_at) as connection:
            await lock_profile(connection, user_sub, lease.agent_key)
            held = select(reflections.c.id).where(is_held(reflections, lease)).with_for_update()
            if await connection.scalar(held) is None:
                return "gone"
            source = Source(user_sub, lease.agent_key, lease.row_id, self.embedder.model, self.pgvector)
            for (used, draft), vector in zip(revisions, vectors, strict=True):
                await versions.revise(connection, source, used, draft, vector)
            done = {"status": "ready", "lease_token": None, "last_error": None, "available_at": func.now()}
            await connection.execute(update(reflections).where(is_held(reflections, lease)).values(done))
        return "reflected"
