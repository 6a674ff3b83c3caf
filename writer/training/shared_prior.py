"""Shared priors: heads trained on numeric features of users who contribute, each with a capped weight.

Each level is where the next begins (partial pooling; Gelman & Hill 2007, chapter 12): one head of all agents' users,
one of each agent's, and then each profile's own. The first two belong to no user. Their rows of one training have one
version, and keep the digests of all its contributors. Erasing one of these deletes what serves nobody by itself, and
empties what serves: it is trained again, without them, at once, see ``writer.training.fleet``.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from sqlalchemy import ColumnElement, RowMapping, delete, func, insert, literal, or_, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from policy import features
from policy.examples import Examples, pooled
from policy.network import Head
from policy.weights import WeightsError, pack, unpack
from retrieval.search.fleet import is_filled
from retrieval.tables.columns import SHARED
from retrieval.tables.policies import policies
from writer.training.contributions import Contribution
from writer.training.lifecycle import LIVE

FEWEST_USERS = 5
"""Fewest users of a shared head: with fewer it would be close to one user's own."""
CAP = 0.2
"""The largest share of the whole that one user's examples have."""
MOST = 10_000
"""Decisions that a shared head is trained on, the latest of each user: it has some hundred numbers to learn."""
_LOCK, _LOCK_SHARED = (
    text(f"SELECT pg_advisory_xact_lock{kind}(hashtextextended('shared prior', 3))") for kind in ("", "_shared")
)


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """The weights that heads begin with: a prior's and its version, or the factory's and None."""

    head: Head
    version: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Starts:
    """The starts of receiving profiles: their agent's head, else the head of all agents."""

    everybody: Start
    agents: Mapping[str, Start] = field(default_factory=dict)

    def of(self, agent_key: str) -> Start:
        """Returns the start of this agent's profiles."""
        return self.agents.get(agent_key, self.everybody)


@dataclass(frozen=True, slots=True, eq=False)
class Trained:
    """A head that profiles share, by how many decisions of how many users."""

    head: Head
    decisions: int
    users: int


def pool(users: Mapping[str, Sequence[Examples]]) -> Examples | None:
    """Returns what a shared head is trained on, one part a user; None of fewer than FEWEST_USERS."""
    if len(users) < FEWEST_USERS:
        return None
    each = max(MOST // len(users), 1)
    users = {user: [part.take(np.arange(len(part))[-each:]) for part in parts] for user, parts in users.items()}
    return pooled([pooled(parts, 1.0) if len(parts) > 1 else parts[0] for parts in users.values()], CAP)


def by_user(given: Sequence[Contribution]) -> dict[str, list[Examples]]:
    """Returns the examples that each user gave, of all agents."""
    found: dict[str, list[Examples]] = {}
    for each in given:
        found.setdefault(each.user_sub, []).append(each.examples)
    return found


def newest_version() -> ColumnElement[int]:
    """Returns the version of the newest training of what is shared; 0 before the first."""
    shared = policies.alias("shared")
    newest = select(func.coalesce(func.max(shared.c.version), 0)).where(shared.c.user_sub == SHARED)
    return newest.scalar_subquery()


async def lock(connection: AsyncConnection) -> None:
    """Waits until no erasure of a contributor is under way, and lets none begin until the transaction ends."""
    await connection.execute(_LOCK)


async def latest(connection: AsyncConnection, begin: Head) -> Starts:
    """Returns the newest shared heads that stand and fit the features; ``begin`` where there are none."""
    newest = (
        select(func.max(policies.c.version))
        .where(
            policies.c.user_sub == SHARED,
            policies.c.agent_key == SHARED,
            policies.c.feature_version == features.VERSION,
            is_filled(policies),
        )
        .scalar_subquery()
    )
    statement = (
        select(policies.c.agent_key, policies.c.version, policies.c.weights, policies.c.checksum)
        .where(policies.c.user_sub == SHARED, policies.c.version == newest, is_filled(policies))
        .order_by(policies.c.agent_key)
    )
    found: dict[str, Start] = {}
    for row in await connection.execute(statement):
        try:
            found[row.agent_key] = Start(unpack(row.weights, row.checksum, features.VERSION), row.version)
        except WeightsError:
            continue
    everybody = found.pop(SHARED, None)
    return Starts(Start(begin)) if everybody is None else Starts(everybody, found)


async def store(
    connection: AsyncConnection,
    trained: Mapping[str, Trained],
    users: Collection[str],
    lives: Mapping[str, Mapping[str, object]],
) -> Starts:
    """Stores what one training gave under the next version, in the place of what was emptied.

    Returns where heads begin now.

    Args:
        connection: the worker's, which holds the ``lock``.
        trained: by agent; SHARED: of all agents.
        users: all who contributed to any of it.
        lives: columns of the heads that serve or are on trial, by agent; the others serve no profile by themselves.
    """
    version = int((await connection.execute(select(newest_version()))).scalar_one()) + 1
    await end_emptied(connection)  # after that: whoever still has its weights in memory must see another version
    digests = sorted(digest(user) for user in users)
    for agent_key, each in trained.items():
        weights, checksum = pack(each.head, features.VERSION)
        row: dict[str, object] = {
            "user_sub": SHARED,
            "agent_key": agent_key,
            "version": version,
            "status": "retired",
            "feature_version": features.VERSION,
            "weights": weights,
            "checksum": checksum,
            "blend": 1.0,
            "decisions": each.decisions,
            "contributors": digests,
            **lives.get(agent_key, {}),
        }
        metrics = row.get("metrics", {})
        row["metrics"] = {**(metrics if isinstance(metrics, dict) else {}), "users": each.users}
        await connection.execute(insert(policies).values(row))
    starts = {agent_key: Start(each.head, version) for agent_key, each in trained.items()}
    return Starts(starts.pop(SHARED), starts)


async def forget(connection: AsyncConnection, user_sub: str) -> int:
    """Takes the user out of every head that they contributed to, and returns how many; the connection is the user's.

    What serves or is on trial is emptied: its life goes on when it is trained again. So is the newest version, by which
    it is known that there is something to train again. What they were judged by stays, the means of all users'
    decisions together. The rest is deleted.
    """
    await connection.execute(_LOCK_SHARED)
    emptying = update(policies).values(weights=b"", checksum=b"", contributors=[])
    kept = or_(policies.c.status.in_(LIVE), policies.c.version == newest_version())
    touched = 0
    for statement in (
        emptying.where(*_weighed_in(user_sub), kept),
        delete(policies).where(*_weighed_in(user_sub)),
    ):
        touched += int((await connection.execute(statement)).rowcount)
    return touched


def _weighed_in(user_sub: str) -> tuple[ColumnElement[bool], ...]:
    contributed = literal(digest(user_sub)) == policies.c.contributors.any_()
    return policies.c.user_sub == SHARED, contributed


def digest(user_sub: str) -> str:
    """Returns the name under which a contributor is remembered: sha256, in hex."""
    return hashlib.sha256(user_sub.encode()).hexdigest()


async def emptied(connection: AsyncConnection) -> Sequence[RowMapping]:
    """Returns what erasures have emptied, as the columns by which its life goes on; the connection is a worker's."""
    kept = ("agent_key", "status", "created_at", "promoted_at", "verdict", "metrics")
    statement = (
        select(*(policies.c[name] for name in kept))
        .where(policies.c.user_sub == SHARED, ~is_filled(policies))
        .order_by(policies.c.agent_key, policies.c.version)
    )
    return (await connection.execute(statement)).mappings().all()


async def end_emptied(connection: AsyncConnection) -> None:
    """Deletes what erasures have emptied; the connection is the worker's."""
    await connection.execute(delete(policies).where(policies.c.user_sub == SHARED, ~is_filled(policies)))
