"""Contributions: what a profile gives to its fleet, the numbers of its latest rewarded decisions and no content.

A contribution is the user's own row: it is in an export, and goes with an erasure. It is kept, and not read from the
log again each time, so that a fleet can be trained again at once when one of its users is erased.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save
from sqlalchemy import delete, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from policy import features
from policy.examples import Examples
from retrieval.search.fleet import takes_part
from retrieval.tables.fleets import contributions
from retrieval.tables.kinds import Fleet
from retrieval.tables.profiles import profiles

MOST = 300
"""The latest rewarded decisions of a profile that are in it: more of one user would tell of that user alone."""
_HALF = ("inputs", "prior", "credit", "query")
"""Kept with half a float's precision, as features are logged."""


@dataclass(frozen=True, slots=True, eq=False)
class Contribution:
    """The examples that one profile gave; ``created_at`` tells it from one of the same name after an erasure."""

    user_sub: str
    agent_key: str
    created_at: datetime
    updated_at: datetime
    examples: Examples

    @property
    def key(self) -> tuple[str, str, datetime]:
        """Returns the key that names it."""
        return self.user_sub, self.agent_key, self.created_at


async def give(connection: AsyncConnection, user_sub: str, agent_key: str, examples: Examples) -> None:
    """Stores what the profile gives, in the place of what it gave; the connection is the user's."""
    latest = examples.take(np.arange(len(examples))[-MOST:])
    values = {"feature_version": features.VERSION, "decisions": len(latest), "examples": packed(latest)}
    new = insert(contributions).values(user_sub=user_sub, agent_key=agent_key, **values)
    changed = contributions.c.examples.is_distinct_from(new.excluded.examples)
    await connection.execute(
        new.on_conflict_do_update(
            index_elements=["user_sub", "agent_key"], set_={**values, "updated_at": func.now()}, where=changed
        )
    )


async def take_back(connection: AsyncConnection, user_sub: str, agent_key: str) -> None:
    """Deletes what the profile gave, if anything; the connection is the user's."""
    mine = contributions.c.user_sub == user_sub, contributions.c.agent_key == agent_key
    await connection.execute(delete(contributions).where(*mine))


async def given(connection: AsyncConnection, fleet: Fleet) -> list[Contribution]:
    """Returns what all profiles give that take part by now, in the order of their keys; the connection is a worker's.

    What is of another version of the features is left out.
    """
    mine = contributions.c
    statement = (
        select(mine.user_sub, mine.agent_key, mine.created_at, mine.updated_at, mine.examples, profiles.c.contribute)
        .join(profiles, (profiles.c.user_sub == mine.user_sub) & (profiles.c.agent_key == mine.agent_key))
        .where(mine.feature_version == features.VERSION, profiles.c.learning)
        .order_by(mine.user_sub, mine.agent_key)
    )
    return [
        Contribution(row.user_sub, row.agent_key, row.created_at, row.updated_at, unpacked(row.examples))
        for row in await connection.execute(statement)
        if takes_part(fleet, row.contribute)
    ]


async def still_given(connection: AsyncConnection, used: Sequence[Contribution]) -> list[Contribution]:
    """Returns those of the contributions that nobody took back and no erasure deleted since they were read."""
    mine = contributions.c
    rows = await connection.execute(select(mine.user_sub, mine.agent_key, mine.created_at))
    held = {tuple(row) for row in rows}
    return [each for each in used if each.key in held]


def packed(examples: Examples) -> bytes:
    """Returns the examples as bytes. Queries are numbered anew: the log's numbers are digests of what was asked."""
    _, place = np.unique(examples.group, return_inverse=True)
    arrays: dict[str, NDArray[np.generic]] = {
        field.name: getattr(replace(examples, group=place.astype(np.int64)), field.name) for field in fields(Examples)
    }
    arrays |= {name: arrays[name].astype(np.float16) for name in _HALF}
    blob: bytes = save({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    return blob


def unpacked(blob: bytes) -> Examples:
    """Returns the examples that were packed."""
    arrays = load(blob)
    return Examples(**{**arrays, **{name: arrays[name].astype(np.float32) for name in _HALF}})
