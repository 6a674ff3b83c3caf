"""Moves the vectors of large profiles into the HNSW index, and out again when the profile has become small.

HNSW is pgvector's index for approximate nearest-neighbour search; small profiles are searched exactly, without it.
"""

from contextlib import suppress
from dataclasses import dataclass

from sqlalchemy import Update, and_, func, select, tuple_, update

from retrieval.database.database import Database
from retrieval.database.rows import Rows
from retrieval.errors import UserErased
from retrieval.tables.cases import INDEXED_DIMENSIONS, case_embeddings, cases
from retrieval.tables.profiles import profiles
from writer.audit import Change, note
from writer.profiles import Profile, each_profile, is_approximate, lock_profile

LARGE_VECTORS = 20_000
"""Least vectors of a profile for which the index is used; below half of this number its use ends."""
BATCH = 200
"""Most vectors that one statement moves; inserting one into the index takes about a millisecond."""


@dataclass(frozen=True, slots=True)
class ProfileSize:
    """The numbers that decide whether the index serves a profile.

    Attributes:
        approximate: whether the index serves the profile now.
        vectors: number of ready cases' vectors in the profile's space.
        dimension: dimension of those vectors; None without any.
        indexable: whether the database has an index to search.
    """

    approximate: bool
    vectors: int
    dimension: int | None
    indexable: bool


async def index_all(database: Database, *, large: int = LARGE_VECTORS) -> int:
    """Moves profiles that became large into the index, and those no longer large out; returns how many changed.

    Raises:
        DatabaseUnavailable: what was moved so far stays; the next time goes on there.
    """
    changed = 0
    async for profile in each_profile(database):
        with suppress(UserErased):
            changed += await index_profile(database, profile, large=large)
    return changed


async def index_profile(database: Database, profile: Profile, *, large: int = LARGE_VECTORS) -> bool:
    """Moves the profile's vectors into the index or out of it, by their number; returns whether searches switched.

    While the profile's row says ``approximate``, all of its vectors are in the index: searches rely on that.

    Raises:
        UserErased: the user was erased after the profile was listed.
        DatabaseUnavailable: what was moved so far stays; the next time goes on there.
    """
    async with database.as_user(profile.user_sub, profile.seen_at) as connection:
        row = (await connection.execute(size(profile.user_sub, profile.agent_key))).one_or_none()
    if row is None:
        return False
    current = ProfileSize(*row)
    enough = large // 2 if current.approximate else large
    # a shard of a Citus cluster refuses the function that asks the index: there searches stay exact
    wanted = (
        not database.citus
        and current.indexable
        and current.dimension in INDEXED_DIMENSIONS
        and current.vectors >= enough
    )
    switched = not wanted and await _set_approximate(database, profile, current.vectors, approximate=False)
    moved = BATCH
    while moved == BATCH:  # many short transactions: others wait for the profile's lock, and an erasure for the user's
        async with database.as_user(profile.user_sub, profile.seen_at) as connection:
            await lock_profile(connection, profile.user_sub, profile.agent_key)
            # no vector leaves the index while searches use it
            statement = move(profile.user_sub, profile.agent_key, approximate=wanted)
            moved = (await connection.execute(statement)).rowcount
    return switched or (wanted and await _set_approximate(database, profile, current.vectors, approximate=True))


async def _set_approximate(database: Database, profile: Profile, vectors: int, *, approximate: bool) -> bool:
    """Makes searches use the index, after moving the last vectors into it, or not; returns whether that changed."""
    user_sub, agent_key = profile.user_sub, profile.agent_key
    async with database.as_user(user_sub, profile.seen_at) as connection:
        await lock_profile(connection, user_sub, agent_key)
        if (await connection.execute(set_approximate(user_sub, agent_key, approximate=approximate))).rowcount == 0:
            return False
        rest = move(user_sub, agent_key, approximate=True)
        while approximate and (await connection.execute(rest)).rowcount == BATCH:
            pass
        switched = Change.of((user_sub, agent_key), "upkeep", "index_profile", approximate=approximate, vectors=vectors)
        await note(connection, switched)
    return True


def size(user_sub: str, agent_key: str) -> Rows:
    """Returns a statement that selects the columns of ``ProfileSize`` for the profile, at most one row."""
    return (
        select(
            profiles.c.approximate,
            func.count(cases.c.id).label("vectors"),
            func.max(case_embeddings.c.dimension).label("dimension"),
            func.to_regproc("casebank_nearest").is_not(None).label("indexable"),
        )
        .select_from(
            profiles.outerjoin(
                case_embeddings,
                and_(
                    case_embeddings.c.user_sub == user_sub,
                    case_embeddings.c.agent_key == agent_key,
                    case_embeddings.c.model == profiles.c.embedding_model,
                ),
            ).outerjoin(
                cases,
                and_(
                    cases.c.user_sub == user_sub,
                    cases.c.id == case_embeddings.c.case_id,
                    cases.c.status == "ready",
                ),
            ),
        )
        .where(profiles.c.user_sub == user_sub, profiles.c.agent_key == agent_key)
        .group_by(profiles.c.approximate)
    )


def move(user_sub: str, agent_key: str, *, approximate: bool) -> Update:
    """Returns a statement that moves up to BATCH vectors of the profile, of any model, into the index or out of it."""
    theirs = and_(case_embeddings.c.user_sub == user_sub, case_embeddings.c.agent_key == agent_key)
    left = (
        select(case_embeddings.c.model, case_embeddings.c.case_id)
        .where(theirs, case_embeddings.c.approximate != approximate)
        .order_by(case_embeddings.c.model, case_embeddings.c.case_id)
        .limit(BATCH)
    )
    if not approximate:
        left = left.where(~is_approximate(user_sub, agent_key))
    key = tuple_(case_embeddings.c.model, case_embeddings.c.case_id)
    return update(case_embeddings).where(theirs, key.in_(left)).values(approximate=approximate)


def set_approximate(user_sub: str, agent_key: str, *, approximate: bool) -> Update:
    """Returns a statement that makes the profile's searches use the index or not; no row changes if they do already."""
    profile = update(profiles).where(
        profiles.c.user_sub == user_sub,
        profiles.c.agent_key == agent_key,
        profiles.c.approximate != approximate,
    )
    return profile.values(approximate=approximate)
