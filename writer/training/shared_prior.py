"""The shared prior: where heads begin, trained on numeric features of users who opted in, each with a capped weight.

Its row belongs to no user. It keeps the digests of its contributors; erasing one of them deletes the prior, and every
head that began there stops serving until it is trained again.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import delete, func, insert, literal, select
from sqlalchemy.ext.asyncio import AsyncConnection

from policy import features
from policy.examples import Examples, pooled
from policy.network import Head
from policy.weights import WeightsError, pack, unpack
from retrieval.schema import SHARED, policies

FEWEST_USERS = 5
"""With fewer users a prior would be close to one user's own head."""
RIDGE = 100.0
"""Pull of a prior towards the factory's head, in decisions: chosen as a profile's is, it earned no more (record 21)."""
CAP = 0.2
"""The largest share of the whole that one user's examples have."""


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """Where heads begin: a prior's weights and its version, or the factory's and None."""

    head: Head
    version: int | None = None


def pool(users: Mapping[str, Sequence[Examples]]) -> Examples | None:
    """Returns what a prior is trained on, one part a user; None of fewer than FEWEST_USERS."""
    if len(users) < FEWEST_USERS:
        return None
    return pooled([pooled(parts, 1.0) if len(parts) > 1 else parts[0] for parts in users.values()], CAP)


async def latest(connection: AsyncConnection) -> Start | None:
    """Returns the newest prior that stands and fits the features; None without one."""
    newest = (
        select(policies.c.version, policies.c.weights, policies.c.checksum)
        .where(policies.c.user_sub == SHARED, policies.c.feature_version == features.VERSION)
        .order_by(policies.c.version.desc())
        .limit(1)
    )
    row = (await connection.execute(newest)).one_or_none()
    if row is None:
        return None
    try:
        return Start(unpack(row.weights, row.checksum, features.VERSION), row.version)
    except WeightsError:
        return None


async def store(connection: AsyncConnection, head: Head, users: Sequence[str], decisions: int) -> Start:
    """Stores a prior under the next version; the connection is the worker's."""
    last = select(func.coalesce(func.max(policies.c.version), 0)).where(policies.c.user_sub == SHARED)
    version = int((await connection.execute(last)).scalar_one()) + 1
    weights, checksum = pack(head, features.VERSION)
    row: dict[str, object] = {
        "user_sub": SHARED,
        "agent_key": SHARED,
        "version": version,
        "status": "retired",  # it serves nobody by itself
        "feature_version": features.VERSION,
        "weights": weights,
        "checksum": checksum,
        "blend": 1.0,
        "decisions": decisions,
        "metrics": {"users": len(users)},
        "contributors": [digest(user) for user in users],
    }
    await connection.execute(insert(policies).values(row))
    return Start(head, version)


async def forget(connection: AsyncConnection, user_sub: str) -> int:
    """Deletes every prior that the user contributed to, and returns how many; the connection is the user's."""
    contributed = literal(digest(user_sub)) == policies.c.contributors.any_()
    gone = await connection.execute(delete(policies).where(policies.c.user_sub == SHARED, contributed))
    return int(gone.rowcount)


def digest(user_sub: str) -> str:
    """Returns the name under which a contributor is remembered: sha256, in hex."""
    return hashlib.sha256(user_sub.encode()).hexdigest()
