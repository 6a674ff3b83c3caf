"""Re-embeds profiles: makes vectors of another embedding model beside the old vectors, then switches at once."""

from collections.abc import Callable, Collection
from contextlib import suppress
from uuid import UUID

from sqlalchemy import ARRAY, Select, Uuid, all_, and_, bindparam, delete, func, literal, select, update

from retrieval.database.database import Database
from retrieval.database.rows import Rows
from retrieval.errors import SealBroken, UserErased
from retrieval.ports import Embedder, embed_accepted
from retrieval.tables.cases import case_embeddings, cases
from retrieval.tables.memories import memories
from retrieval.tables.procedures import procedures
from retrieval.tables.profiles import profiles, replays
from retrieval.telemetry import log
from writer.analysis.placeholders import without_placeholders
from writer.privacy.keys import Keyring
from writer.privacy.master_keys import MasterKeyMismatch
from writer.profiles import Profile, each_profile, lock_profile
from writer.vectors import add_vector, as_text, stored_later

BATCH = 256
"""Maximum number of texts that are embedded at a time."""

Progress = Callable[[int], object]
"""A callback that gets the number of newly embedded cases after each batch."""


async def reembed_all(
    database: Database, embedder: Embedder, keyring: Keyring | None = None, *, progress: Progress = lambda _count: None
) -> int:
    """Moves every profile to the embedder's model, as ``reembed`` does; returns how many cases were embedded.

    Raises:
        EmbedderError: the vectors made so far stay, and are not made again when the call is repeated.
    """
    total = 0
    async for profile in each_profile(database):
        with suppress(UserErased):
            try:
                total += await reembed(database, embedder, profile, keyring, progress=progress)
            except (SealBroken, MasterKeyMismatch):  # one user's key is a matter of that user
                log.warning("reembed.refused", why="a user's key does not open")
    return total


async def reembed(  # noqa: PLR0913 - the last three have defaults that nearly all callers take
    database: Database,
    embedder: Embedder,
    profile: Profile,
    keyring: Keyring | None = None,
    *,
    batch: int = BATCH,
    progress: Progress = lambda _count: None,
) -> int:
    """Gives each ready case a vector of the embedder's model, then switches the profile to it and drops old vectors.

    Searches use the old vectors until the switch. After the switch this call embeds the procedures, and the worker the
    turns and facts; until they are embedded, they are found only by words. So is, for good, what has no vector: a
    blank text, one that the embedder rejects, and one that does not decrypt. The keyring decrypts texts; without a
    keyring, no text may be encrypted. Returns the number of embedded cases.

    Raises:
        EmbedderError: the vectors made so far stay, and are not made again when the call is repeated.
    """
    done = 0
    blank: set[UUID] = set()
    while True:
        wanted = unembedded(profile.user_sub, profile.agent_key, embedder.model, blank).limit(batch)
        tasks = await _without_vector(database, profile, keyring, wanted)
        if not tasks:
            if await _switch(database, embedder.model, profile, blank):
                await _reembed_triggers(database, embedder, profile, batch)
                return done
            continue
        # outside any transaction: it may take a while
        vectors = dict(zip(tasks, await embed_accepted(embedder, list(tasks.values())), strict=True))
        blank |= {case_id for case_id, vector in vectors.items() if vector is None}
        async with database.as_user(profile.user_sub, profile.seen_at) as connection:
            await lock_profile(connection, profile.user_sub, profile.agent_key)  # its vectors may be being indexed
            those = select(cases.c.id).where(cases.c.user_sub == profile.user_sub, cases.c.id.in_(vectors))
            held = those.order_by(cases.c.id).with_for_update(read=True, key_share=True)  # against deletion
            there = (await connection.scalars(held)).all()
            values = [
                {"case_id": case_id, "vector": as_text(vector)}
                for case_id in there
                if (vector := vectors[case_id]) is not None
            ]
            if values:
                statement = add_vector(
                    profile.user_sub, profile.agent_key, embedder.model, embedder.dimension
                ).on_conflict_do_nothing()
                await connection.execute(statement, values)
        done += len(values)
        progress(len(values))


async def _without_vector(
    database: Database, profile: Profile, keyring: Keyring | None, statement: Rows
) -> dict[UUID, str]:
    """Returns the tasks, by case id, of the cases that the statement selects, unsealed; empty if one does not open."""
    async with database.as_user(profile.user_sub, profile.seen_at) as connection:
        rows = (await connection.execute(statement)).all()
        words = await keyring.find(connection, profile.user_sub) if keyring is not None else None
    tasks: dict[UUID, str] = {row.id: row.task for row in rows if row.words is None}
    sealed = [row for row in rows if row.words is not None]
    if not sealed:
        return tasks
    if words is None:
        raise AssertionError("the words of a case are encrypted, and its user has no key here")
    for row in sealed:
        try:
            tasks[row.id] = words.open_case(row.id, row.words).task
        except SealBroken:
            log.warning("reembed.no_vector", case_id=str(row.id))
            tasks[row.id] = ""
    return tasks


async def _reembed_triggers(database: Database, embedder: Embedder, profile: Profile, batch: int) -> None:
    """Replaces the trigger vector of every procedure version of the profile by one of the embedder's model."""
    user_sub = profile.user_sub
    async with database.as_user(user_sub, profile.seen_at) as connection:
        statement = unembedded_triggers(user_sub, profile.agent_key, embedder.model)
        rows = (await connection.execute(statement)).all()
    version = update(procedures).where(
        procedures.c.user_sub == user_sub,
        procedures.c.id == bindparam("b_id"),
        procedures.c.version == bindparam("b_version"),
    )
    stored = version.values(embedding_model=embedder.model, embedding=stored_later("b_vector"))
    for first in range(0, len(rows), batch):
        some = rows[first : first + batch]
        vectors = await embed_accepted(embedder, [without_placeholders(row.trigger) for row in some])
        values = [
            {"b_id": row.id, "b_version": row.version, "b_vector": as_text(vector)}
            for row, vector in zip(some, vectors, strict=True)
            if vector is not None
        ]
        if values:
            async with database.as_user(user_sub, profile.seen_at) as connection:
                await connection.execute(stored, values)


def unembedded_triggers(user_sub: str, agent_key: str, model: str) -> Select[UUID, int, str]:
    """Returns a statement for procedure versions without a vector of the model, newest first."""
    return (
        select(procedures.c.id, procedures.c.version, procedures.c.trigger)
        .where(
            procedures.c.user_sub == user_sub,
            procedures.c.agent_key == agent_key,
            procedures.c.embedding_model.is_distinct_from(model),
        )
        .order_by(procedures.c.id.desc(), procedures.c.version.desc())
    )


async def _switch(database: Database, model: str, profile: Profile, blank: Collection[UUID]) -> bool:
    """Switches the profile to the model's vectors and returns True; returns False if a new case lacks its vector."""
    user_sub, agent_key = profile.user_sub, profile.agent_key
    async with database.as_user(user_sub, profile.seen_at) as connection:
        await lock_profile(connection, user_sub, agent_key)
        if (await connection.execute(unembedded(user_sub, agent_key, model, blank).limit(1))).first() is not None:
            return False
        chosen = update(profiles).where(profiles.c.user_sub == user_sub, profiles.c.agent_key == agent_key)
        other_model = chosen.where(profiles.c.embedding_model.is_distinct_from(model))
        if (await connection.execute(other_model.values(embedding_model=model))).rowcount:
            replayed = update(replays).where(replays.c.user_sub == user_sub, replays.c.agent_key == agent_key)
            await connection.execute(replayed.values(unlike=None))  # the old model's; the next replay measures again
        others = delete(case_embeddings).where(
            case_embeddings.c.user_sub == user_sub,
            case_embeddings.c.agent_key == agent_key,
            case_embeddings.c.model != model,
        )
        await connection.execute(others)
        without = update(memories).where(  # the worker embeds them
            memories.c.user_sub == user_sub,
            memories.c.agent_key == agent_key,
            memories.c.status == "ready",
            memories.c.model.is_distinct_from(model),
        )
        await connection.execute(without.values(status="pending", attempts=0, available_at=func.now()))
    return True


def unembedded(user_sub: str, agent_key: str, model: str, blank: Collection[UUID]) -> Rows:
    """Returns a statement that selects ready cases without a vector of the model, except ``blank``, newest first."""
    vector = and_(
        case_embeddings.c.user_sub == user_sub,
        case_embeddings.c.agent_key == agent_key,
        case_embeddings.c.model == model,
        case_embeddings.c.case_id == cases.c.id,
    )
    return (
        select(cases.c.id, cases.c.task, cases.c.words)
        .where(
            cases.c.user_sub == user_sub,
            cases.c.agent_key == agent_key,
            cases.c.status == "ready",
            ~select(case_embeddings.c.case_id).where(vector).exists(),
            cases.c.id != all_(literal(list(blank), ARRAY(Uuid))),  # one parameter; a statement takes 32,767
        )
        .order_by(cases.c.created_at.desc(), cases.c.id.desc())
    )
