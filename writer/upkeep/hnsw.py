"""Moves the vectors of large profiles into the HNSW index, and of profiles that became small out of the index.

HNSW is pgvector's index for approximate nearest-neighbour search; small profiles are searched exactly, without it.
"""

from functools import partial

from sqlalchemy import Update, and_, func, select, tuple_, update

from retrieval.database.database import Database
from retrieval.database.rows import Rows
from retrieval.tables.cases import INDEXED_DIMENSIONS, case_embeddings, cases
from retrieval.tables.profiles import profiles
from writer.audit import Change, note
from writer.profiles import Profile, in_every_profile, lock_profile

LARGE_VECTORS = 20_000
"""Number of vectors of a profile from which searches use the index; below half of this number they stop using it."""
BATCH = 200
"""Maximum number of vectors that one statement moves; each takes about a millisecond to insert into the index."""


async def index_all(database: Database, *, large: int = LARGE_VECTORS) -> int:
    """Moves the vectors of profiles that became large into the index, of small ones out; returns the number of changes.

    Raises:
        DatabaseUnavailable, Exception: see ``in_every_profile``; what was moved stays.
    """
    changed = 0
    async for switched in in_every_profile(database, partial(index_profile, database, large=large)):
        changed += switched
    return changed


async def index_profile(database: Database, profile: Profile, *, large: int = LARGE_VECTORS) -> bool:
    """Moves the profile's vectors into the index or out of it, by their number; returns whether searches switched.

    While the profile's row says ``approximate``, all of its vectors are in the index: searches rely on that.

    Raises:
        DatabaseUnavailable: what was moved so far stays; the next time goes on there.
    """
    async with database.as_user(profile.user_sub, profile.seen_at) as connection:
        row = (await connection.execute(size(profile.user_sub, profile.agent_key))).one_or_none()
    if row is None:
        return False
    enough = large // 2 if row.approximate else large
    # a shard of a Citus cluster refuses the function that asks the index: there searches stay exact
    indexable = row.indexable and row.dimension in INDEXED_DIMENSIONS and not database.citus
    wanted = indexable and row.vectors >= enough
    if not (wanted or row.approximate or row.indexed):
        return False
    switched = not wanted and await _set_approximate(database, profile, row.vectors, approximate=False)
    moved = BATCH
    while moved == BATCH:  # many short transactions: others wait for the profile's lock, and an erasure for the user's
        async with database.as_user(profile.user_sub, profile.seen_at) as connection:
            await lock_profile(connection, profile.user_sub, profile.agent_key)
            # no vector leaves the index while searches use it
            statement = move(profile.user_sub, profile.agent_key, approximate=wanted)
            moved = (await connection.execute(statement)).rowcount
    return switched or (wanted and await _set_approximate(database, profile, row.vectors, approximate=True))


async def _set_approximate(database: Database, profile: Profile, vectors: int, *, approximate: bool) -> bool:
    """Makes searches use the index, once the last vectors are moved into it, or stop; returns whether this changed."""
    user_sub, agent_key = profile.user_sub, profile.agent_key
    async with database.as_user(user_sub, profile.seen_at) as connection:
        await lock_profile(connection, user_sub, agent_key)
        row = update(profiles).where(
            profiles.c.user_sub == user_sub,
            profiles.c.agent_key == agent_key,
            profiles.c.approximate != approximate,
        )
        if (await connection.execute(row.values(approximate=approximate))).rowcount == 0:
            return False
        rest = move(user_sub, agent_key, approximate=True)
        while approximate and (await connection.execute(rest)).rowcount == BATCH:
            pass
        switched = Change.of((user_sub, agent_key), "upkeep", "index_profile", approximate=approximate, vectors=vectors)
        await note(connection, switched)
    return True


def size(user_sub: str, agent_key: str) -> Rows:
    """Returns a statement that selects what decides whether a profile's searches use the index; at most one row.

    Columns: ``approximate``, true if they use it now; ``vectors``, the number of ready cases with a vector of the
    profile's model, and ``dimension``, that of these vectors; ``indexed``, the number of vectors in the index;
    ``indexable``, true if the database has an HNSW index.
    """
    vector = and_(
        case_embeddings.c.user_sub == user_sub,
        case_embeddings.c.agent_key == agent_key,
        case_embeddings.c.model == profiles.c.embedding_model,
    )
    ready = and_(cases.c.user_sub == user_sub, cases.c.id == case_embeddings.c.case_id, cases.c.status == "ready")
    return (
        select(
            profiles.c.approximate,
            func.count(cases.c.id).label("vectors"),
            func.max(case_embeddings.c.dimension).label("dimension"),
            func.count().filter(case_embeddings.c.approximate).label("indexed"),
            func.to_regproc("casebank_nearest").is_not(None).label("indexable"),
        )
        .select_from(profiles.outerjoin(case_embeddings, vector).outerjoin(cases, ready))
        .where(profiles.c.user_sub == user_sub, profiles.c.agent_key == agent_key)
        .group_by(profiles.c.approximate)
    )


def move(user_sub: str, agent_key: str, *, approximate: bool) -> Update:
    """Returns a statement that moves up to BATCH vectors of a profile into the index, or out of it."""
    theirs = and_(case_embeddings.c.user_sub == user_sub, case_embeddings.c.agent_key == agent_key)
    left = (
        select(case_embeddings.c.model, case_embeddings.c.case_id)
        .where(theirs, case_embeddings.c.approximate != approximate)
        .order_by(case_embeddings.c.model, case_embeddings.c.case_id)
        .limit(BATCH)
    )
    if not approximate:
        mine = profiles.c.user_sub == user_sub, profiles.c.agent_key == agent_key
        left = left.where(~select(profiles.c.approximate).where(*mine).scalar_subquery())
    key = tuple_(case_embeddings.c.model, case_embeddings.c.case_id)
    return update(case_embeddings).where(theirs, key.in_(left)).values(approximate=approximate)
