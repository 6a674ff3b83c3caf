"""Re-embedding: brings a profile over to another vector space beside the old one, then switches at once."""

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from uuid import UUID

from sqlalchemy import ARRAY, REAL, Delete, Select, Update, and_, bindparam, cast, delete, func, select, tuple_, update
from sqlalchemy.dialects.postgresql import Insert, insert

from retrieval.database.database import Database
from retrieval.database.rows import Rows
from retrieval.errors import UserErased
from retrieval.ports import Embedder, Vector, embed_each
from retrieval.tables.cases import case_embeddings, cases
from retrieval.tables.memories import memories
from retrieval.tables.procedures import procedures
from retrieval.tables.profiles import profiles
from writer.analysis.placeholders import without_placeholders
from writer.privacy.keys import Keyring
from writer.privacy.words import Words
from writer.profiles import Profile, each_profile, is_approximate, lock_profile

BATCH = 256

Progress = Callable[[int], object]
"""Called with how many more cases have their vector."""


def _no_progress(_count: int) -> None:
    """Reports nothing."""


async def reembed_all(
    database: Database, embedder: Embedder, keyring: Keyring | None = None, *, progress: Progress = _no_progress
) -> int:
    """Brings every profile into the embedder's space; returns how many cases were embedded.

    Raises:
        EmbedderUnavailable: what is embedded stays; going on later costs it no second time.
        EmbedderMisbehaved: as above.
        DatabaseUnavailable: as above.
    """
    total = 0
    async for profile in each_profile(database):
        with suppress(UserErased):
            total += await reembed(database, embedder, profile, keyring, progress=progress)
    return total


async def reembed(  # noqa: PLR0913 - the last three have defaults that nearly all callers take
    database: Database,
    embedder: Embedder,
    profile: Profile,
    keyring: Keyring | None = None,
    *,
    batch: int = BATCH,
    progress: Progress = _no_progress,
) -> int:
    """Gives each ready case a vector in the embedder's space, then moves the profile there and drops the old vectors.

    The keyring opens the words that are sealed; without it there must be none.
    Until the move searches use the old space; procedures follow right after it, and turns and facts by the worker;
    until then words find them.
    Returns how many cases were embedded.

    Raises:
        UserErased: the user was erased after the profile was listed.
        EmbedderUnavailable: what is embedded stays; going on later costs it no second time.
        EmbedderMisbehaved: as above.
        DatabaseUnavailable: as above.
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
        vectors = dict(zip(tasks, await embed_each(embedder, list(tasks.values())), strict=True))
        blank |= {case_id for case_id, vector in vectors.items() if vector is None}
        stored = await _store(database, embedder, profile, vectors)
        done += stored
        progress(stored)


async def _without_vector(
    database: Database, profile: Profile, keyring: Keyring | None, statement: Rows
) -> dict[UUID, str]:
    async with database.as_user(profile.user_sub, profile.seen_at) as connection:
        rows = (await connection.execute(statement)).all()
        key = await keyring.find(connection, profile.user_sub) if keyring is not None else None
    tasks: dict[UUID, str] = {row.id: row.task for row in rows if row.words is None}
    sealed = [row for row in rows if row.words is not None]
    if sealed and key is None:
        raise AssertionError("the words of this case are sealed, and nobody here can open them")
    words = Words(profile.user_sub, key) if key is not None else None
    return tasks | {row.id: words.open_case(row.id, row.words).task for row in sealed if words is not None}


async def _store(
    database: Database,
    embedder: Embedder,
    profile: Profile,
    vectors: Mapping[UUID, Vector | None],
) -> int:
    """Stores the vectors of the cases that are still there, and returns how many."""
    async with database.as_user(profile.user_sub, profile.seen_at) as connection:
        await lock_profile(connection, profile.user_sub, profile.agent_key)  # its vectors may be about to be indexed
        there = (await connection.scalars(lock_cases(profile.user_sub, vectors))).all()
        values = [
            {"case_id": case_id, "numbers": vector.tolist()}
            for case_id in there
            if (vector := vectors[case_id]) is not None
        ]
        if values:
            statement = add_vector(profile.user_sub, profile.agent_key, embedder.model, embedder.dimension)
            await connection.execute(statement, values)
    return len(values)


async def _reembed_triggers(database: Database, embedder: Embedder, profile: Profile, batch: int) -> None:
    """Gives every version of a procedure a vector in the embedder's space, in place of the one it had."""
    user_sub, blank = profile.user_sub, set[tuple[UUID, int]]()
    while True:
        async with database.as_user(user_sub, profile.seen_at) as connection:
            statement = unembedded_triggers(user_sub, profile.agent_key, embedder.model, blank).limit(batch)
            rows = (await connection.execute(statement)).all()
        if not rows:
            return
        vectors = await embed_each(embedder, [without_placeholders(row.trigger) for row in rows])
        values = [
            {"b_id": row.id, "b_version": row.version, "b_vector": vector.tolist()}
            for row, vector in zip(rows, vectors, strict=True)
            if vector is not None
        ]
        blank |= {(row.id, row.version) for row, vector in zip(rows, vectors, strict=True) if vector is None}
        async with database.as_user(user_sub, profile.seen_at) as connection:
            if values:
                await connection.execute(set_trigger_vector(user_sub, embedder.model), values)


def unembedded_triggers(
    user_sub: str, agent_key: str, model: str, blank: Collection[tuple[UUID, int]]
) -> Select[UUID, int, str]:
    """Returns the statement for versions without a vector of the model, but for those with nothing to embed."""
    return (
        select(procedures.c.id, procedures.c.version, procedures.c.trigger)
        .where(
            procedures.c.user_sub == user_sub,
            procedures.c.agent_key == agent_key,
            procedures.c.embedding_model.is_distinct_from(model),
            tuple_(procedures.c.id, procedures.c.version).not_in(blank),
        )
        .order_by(procedures.c.id.desc(), procedures.c.version.desc())
    )


def set_trigger_vector(user_sub: str, model: str) -> Update:
    """Returns the statement that stores a version's vector: parameters ``b_id``, ``b_version`` and ``b_vector``."""
    version = update(procedures).where(
        procedures.c.user_sub == user_sub,
        procedures.c.id == bindparam("b_id"),
        procedures.c.version == bindparam("b_version"),
    )
    return version.values(embedding_model=model, embedding=bindparam("b_vector", type_=ARRAY(REAL)))


async def _switch(database: Database, model: str, profile: Profile, blank: Collection[UUID]) -> bool:
    """Moves the profile to the model's space; or returns False, for cases without a vector have come."""
    user_sub, agent_key = profile.user_sub, profile.agent_key
    async with database.as_user(user_sub, profile.seen_at) as connection:
        await lock_profile(connection, user_sub, agent_key)
        if (await connection.execute(unembedded(user_sub, agent_key, model, blank).limit(1))).first() is not None:
            return False
        await connection.execute(choose_space(user_sub, agent_key, model))
        await connection.execute(drop_other_spaces(user_sub, agent_key, model))
        await connection.execute(queue_memories(user_sub, agent_key, model))
    return True


def unembedded(user_sub: str, agent_key: str, model: str, blank: Collection[UUID]) -> Rows:
    """Returns the statement for ready cases without a vector of the model, but for those with nothing to embed."""
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
            cases.c.id.not_in(blank),
        )
        .order_by(cases.c.created_at.desc(), cases.c.id.desc())
    )


def lock_cases(user_sub: str, case_ids: Collection[UUID]) -> Select[UUID]:
    """Returns the statement for which of the cases are still there; they stay until the transaction ends."""
    there = select(cases.c.id).where(cases.c.user_sub == user_sub, cases.c.id.in_(case_ids))
    return there.order_by(cases.c.id).with_for_update(read=True, key_share=True)


def add_vector(user_sub: str, agent_key: str, model: str, dimension: int) -> Insert:
    """Returns the statement that stores a vector, with parameters ``case_id`` and ``numbers``; a known one stays."""
    values: dict[str, object] = {
        "user_sub": user_sub,
        "agent_key": agent_key,
        "model": model,
        "case_id": bindparam("case_id"),
        "dimension": dimension,
        # an array fits the column whether or not it is pgvector's
        "embedding": cast(bindparam("numbers", type_=ARRAY(REAL)), ARRAY(REAL)),
        "approximate": is_approximate(user_sub, agent_key),
    }
    return insert(case_embeddings).values(values).on_conflict_do_nothing()


def queue_memories(user_sub: str, agent_key: str, model: str) -> Update:
    """Returns the statement that queues turns and facts without a vector of the model: the worker makes it."""
    waiting = update(memories).where(
        memories.c.user_sub == user_sub,
        memories.c.agent_key == agent_key,
        memories.c.status == "ready",
        memories.c.model.is_distinct_from(model),
    )
    return waiting.values(status="pending", attempts=0, available_at=func.now())


def choose_space(user_sub: str, agent_key: str, model: str) -> Update:
    """Returns the statement that makes searches of the profile use the model's vectors."""
    profile = update(profiles).where(profiles.c.user_sub == user_sub, profiles.c.agent_key == agent_key)
    return profile.values(embedding_model=model)


def drop_other_spaces(user_sub: str, agent_key: str, model: str) -> Delete:
    """Returns the statement that deletes the profile's vectors of every other model."""
    return delete(case_embeddings).where(
        case_embeddings.c.user_sub == user_sub,
        case_embeddings.c.agent_key == agent_key,
        case_embeddings.c.model != model,
    )
