"""Handles memories that were inserted by SQL: stores each as a case, as the service stores one that is posted."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlalchemy import delete, select

from retrieval.tables.cases import inserted_memories
from writer.author import Author
from writer.errors import LeaseLost
from writer.privacy.keys import Keyring
from writer.queue.lease import Lease, is_held
from writer.queue.queue import Queue
from writer.retain.memory import MemoryIn, run_of
from writer.retain.prepare import prepare
from writer.retain.retain import store_within

ACTOR = "sql"
"""The author of these memories, as their cases and the audit name it."""


@dataclass(slots=True)
class InsertedHandler:
    """Stores inserted memories as pending cases; one that the service refuses stays in the queue and ends as dead."""

    queue: Queue
    keyring: Keyring

    async def handle(self, leases: Sequence[Lease]) -> None:
        """Stores the leased memories one by one; called by the worker with each batch of the queue.

        Raises:
            DatabaseUnavailable: some of the memories are not stored.
        """
        for lease in leases:
            await self.queue.attempt([lease], self._store(lease))

    async def _store(self, lease: Lease) -> str:
        """Redacts and stores a memory and takes it off the queue in one transaction. Returns the end for the log.

        Raises:
            LeaseLost: another worker has the memory, or it is gone.
            MemoryOff: the user switched off writing for this agent.
        """
        database, user_sub, since = self.queue.database, lease.user_sub, lease.claimed_at
        memory = inserted_memories.c
        async with database.as_user(user_sub, since) as connection:
            mine = select(memory.content, memory.metadata, memory.created_at).where(is_held(inserted_memories, lease))
            row = (await connection.execute(mine)).one_or_none()
        if row is None:
            raise LeaseLost("the lease ran out, or the memory is gone")
        body = {"agent": lease.agent_key, "content": row.content, "metadata": row.metadata}
        run = await asyncio.to_thread(prepare, run_of(MemoryIn.model_validate(body)))
        run = replace(run, case_id=lease.row_id, created_at=row.created_at)
        async with database.as_user(user_sub, since) as connection:
            taken = await connection.execute(delete(inserted_memories).where(is_held(inserted_memories, lease)))
            if taken.rowcount != 1:
                raise LeaseLost("the lease ran out, or the memory is gone")
            await store_within(database, connection, self.keyring, run, Author(user_sub, ACTOR, since))
        return "stored"
