"""Checkpoints of a backend's graphs, stored as they were sent: encrypted, but not redacted or searched."""

from typing import Annotated
from uuid import UUID

import uuid_utils.compat as uuids
from pydantic import AfterValidator, Field
from sqlalchemy import delete, func, select
from sqlalchemy.dialects.postgresql import insert as upsert

from retrieval.database.database import Database
from retrieval.pages.checkpoints import plain_bytes
from retrieval.tables.runs import checkpoints
from writer.audit import note
from writer.author import Author
from writer.privacy.keys import Keyring
from writer.privacy.names import nameable
from writer.privacy.seal import PayloadTooLarge, pack
from writer.privacy.words import Words
from writer.profiles import lock_profile, open_for_writing
from writer.run import AgentKey, Strict
from writer.storable import line, storable

ThreadId = line(500)
Namespace = Annotated[str, Field(max_length=2_000), AfterValidator(storable)]
MOST_PARTS = 10_000
"""Maximum number of parts of a checkpoint."""
MOST_BYTES = 16 << 20
"""Maximum bytes of all parts of a checkpoint as JSON."""
_PART = ("user_sub", "agent_key", "thread", "namespace", "checkpoint_id", "task", "place")
"""The columns that identify a part of a checkpoint."""


class CheckpointPart(Strict):
    """The state of a checkpoint, or a write that is pending on it."""

    task_id: Annotated[str, Field(max_length=200), AfterValidator(storable)] = Field(
        default="", description="the task of a pending write; empty: the state itself"
    )
    place: int = Field(default=0, ge=-1_000, le=1_000_000, description="number of a write among those of its task")
    value: str = Field(description="the backend's own text, in Base64 say; it is stored as it is")
    first_wins: bool = Field(default=False, description="keep the part that is there; false: replace it")


class CheckpointWritten(Strict):
    """Parts of one checkpoint, written in one transaction."""

    agent: AgentKey
    thread_id: ThreadId = Field(description="the thread, for which no two users share a name")  # type: ignore[valid-type]
    namespace: Namespace = Field(default="", description="part of the graph; empty: the graph itself")
    checkpoint_id: UUID = Field(description="chosen by the backend so that a later one is larger (UUIDv6 or v7)")
    parts: list[CheckpointPart] = Field(min_length=1, max_length=1_000)


async def write_checkpoint(database: Database, keyring: Keyring, written: CheckpointWritten, author: Author) -> None:
    """Stores parts of a checkpoint in one transaction; a part stored before is replaced, or kept with ``first_wins``.

    Raises:
        SecretInName: the agent's name looks like a secret.
        MemoryOff: the user switched off writing for this agent.
        PayloadTooLarge: the checkpoint would have more than MOST_PARTS or MOST_BYTES.
        DatabaseUnavailable: the parts may or may not be stored; the caller can safely write them again.
    """
    agent_key = nameable(written.agent)
    async with database.as_user(author.user_sub, author.authorised_at) as connection:
        words = await keyring.find_or_make(connection, author.user_sub)
        # pruning deletes threads that are silent, and one that speaks again while it looks is not
        await lock_profile(connection, author.user_sub, agent_key)
        await open_for_writing(connection, author.user_sub, agent_key)
        checkpoint = {
            "user_sub": author.user_sub,
            "agent_key": agent_key,
            **hashes(words, written.thread_id, written.namespace),
            "checkpoint_id": written.checkpoint_id,
        }
        rows: dict[bool, list[dict[str, object]]] = {True: [], False: []}
        for part in written.parts:
            part_id = uuids.uuid7()
            texts = {"thread_id": written.thread_id, "namespace": written.namespace}
            texts |= {"task_id": part.task_id, "value": part.value}
            packed = pack(texts)
            row = {
                **checkpoint,
                "id": part_id,
                "key_id": words.key_id,
                "task": words.hash_of_checkpoint("task", part.task_id) if part.task_id else b"",
                "place": part.place,
                "words": words.seal("checkpoint", packed, part_id),
                "size": packed.size,
            }
            rows[part.first_wins].append(row)
        stored = upsert(checkpoints)
        # the id, too: the words are sealed for it
        new = {name: stored.excluded[name] for name in ("id", "key_id", "words", "size", "created_at")}
        if rows[True]:
            await connection.execute(stored.on_conflict_do_nothing(index_elements=_PART), rows[True])
        if rows[False]:
            await connection.execute(stored.on_conflict_do_update(index_elements=_PART, set_=new), rows[False])
        of_checkpoint = [checkpoints.c[name] == value for name, value in checkpoint.items()]
        held = select(func.count(), func.sum(plain_bytes(checkpoints.c))).where(*of_checkpoint)
        count, size = (await connection.execute(held)).one()
        if count > MOST_PARTS or size > MOST_BYTES:
            most = f"{MOST_PARTS} parts and {MOST_BYTES} bytes"
            raise PayloadTooLarge(f"the checkpoint would have {count} parts and {size} bytes, over {most}")


async def delete_thread(database: Database, keyring: Keyring, agent_key: str, thread_id: str, author: Author) -> None:
    """Deletes all checkpoints of a thread for good; without such a thread it does nothing."""
    async with database.as_user(author.user_sub, author.authorised_at) as connection:
        words = await keyring.find(connection, author.user_sub)
        if words is None:
            return
        mine = checkpoints.c.user_sub == author.user_sub, checkpoints.c.agent_key == agent_key
        await lock_profile(connection, author.user_sub, agent_key)
        thread = hashes(words, thread_id, None)["thread"]
        gone = (await connection.execute(delete(checkpoints).where(*mine, checkpoints.c.thread == thread))).rowcount
        if gone:
            await note(connection, author.change(agent_key, "delete_thread", parts=gone))


def hashes(words: Words, thread_id: str | None, namespace: str | None) -> dict[str, bytes]:
    """Returns the keyed hashes of a thread and of a namespace, by column; for None there is no column."""
    names = {"thread": thread_id, "namespace": namespace}
    return {column: words.hash_of_checkpoint(column, name) for column, name in names.items() if name is not None}
