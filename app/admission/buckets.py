"""The buckets of tokens that replicas share: the statement that takes some, and what this process holds of them.

A process takes a block of tokens at a time, so that most requests cost no round trip. All that it holds was taken from
the shared bucket before, and is less than a block: in any span of t seconds, P processes together let at most
``size + t / every_s + P * (block - 1)`` requests of one bucket through. With blocks of one that is exact.

Source: the generic cell rate algorithm (ITU-T I.371): all that is stored is the time at which the bucket will be full.
"""

import asyncio
import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import Protocol

from cachetools import LRUCache
from sqlalchemy import (
    ColumnElement,
    DateTime,
    Integer,
    Interval,
    bindparam,
    cast,
    delete,
    extract,
    func,
    literal,
    select,
)
from sqlalchemy.dialects.postgresql import insert

from app.admission.errors import RateExceeded
from app.admission.quotas import Quota, Standing
from retrieval.database.database import Database
from retrieval.database.fast_path import FastStatement
from retrieval.database.parameters import USER_SUB, may_enter
from retrieval.tables.keys import rate_limits
from writer.author import Author

REMEMBERED = 20_000
"""Buckets whose tokens a process remembers; a forgotten bucket loses one block at most."""
SWEPT_AFTER = timedelta(minutes=1)
"""Time that a full bucket stays in the table; its row has no further use."""


class TakenTokens(Protocol):
    """Result of a take: the tokens, 0 if the bucket is empty, and the seconds until it is full again."""

    granted: int
    whole_in_s: float


@cache
def take() -> FastStatement[TakenTokens]:
    """Returns the statement that takes up to ``block`` tokens from a bucket, as many as there are.

    It takes the parameters ``bucket``, ``size``, ``every`` (an interval), ``block``, and ``now``: null for the
    database's clock, which replicas share. Where the clock went back, or the quota was made smaller, a bucket is
    empty at worst. Buckets of the same user that have been full for long are deleted on the way.
    """
    size, block = bindparam("size", type_=Integer), bindparam("block", type_=Integer)
    every, bucket = bindparam("every", type_=Interval), bindparam("bucket", type_=rate_limits.c.bucket.type)
    now = func.coalesce(bindparam("now", type_=DateTime(timezone=True)), func.now())
    none = literal(timedelta(), Interval)
    missing = func.greatest(none, func.least(rate_limits.c.full_at - now, _times(every, size)))
    there = func.floor(size - extract("epoch", missing) / extract("epoch", every))
    granted = cast(func.greatest(0, func.least(block, there)), Integer)
    first = select(USER_SUB, bucket, block, now + _times(every, block)).where(may_enter())
    long_full = (
        select(rate_limits.c.bucket)
        .where(
            may_enter(),
            rate_limits.c.user_sub == USER_SUB,
            rate_limits.c.bucket != bucket,
            rate_limits.c.full_at < now - literal(SWEPT_AFTER, Interval),
        )
        .with_for_update(skip_locked=True)  # another process may be taking from it, or sweeping, too
    )
    swept = delete(rate_limits).where(
        may_enter(), rate_limits.c.user_sub == USER_SUB, rate_limits.c.bucket.in_(long_full)
    )
    taking = (
        insert(rate_limits)
        .from_select(["user_sub", "bucket", "granted", "full_at"], first)
        .on_conflict_do_update(
            index_elements=["user_sub", "bucket"],
            set_={"granted": granted, "full_at": now + missing + _times(every, granted)},
        )
        .returning(rate_limits.c.granted, extract("epoch", rate_limits.c.full_at - now).label("whole_in_s"))
    )
    return FastStatement(taking.add_cte(swept.cte("swept")))


def _times(interval: ColumnElement[timedelta], number: ColumnElement[int]) -> ColumnElement[timedelta]:
    return interval.op("*", return_type=Interval())(number)


@dataclass(slots=True)
class _LocalBucket:
    """A bucket as known to this process: tokens held here, and the shared bucket at the last request."""

    tokens: int = 0
    left: int = 0
    whole_at: float = 0.0
    empty_until: float = 0.0
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(frozen=True, slots=True)
class Buckets:
    """Takes tokens from those that the process holds, or else from the database."""

    database: Database
    _held: LRUCache[tuple[str, bytes], _LocalBucket] = field(default_factory=lambda: LRUCache(REMEMBERED))

    async def take(self, quota: Quota, author: Author, name: str, at: datetime | None = None) -> Standing:
        """Takes one token of the user's bucket of that name, and returns the rest.

        Args:
            quota: size of the bucket, and time for one token.
            author: owner of the bucket.
            name: name of the agent or the session; any text for the user's own bucket.
            at: the current time; None: by the database's clock, which replicas share.

        Raises:
            RateExceeded: the bucket is empty.
            UserErased, DatabaseUnavailable: see Database.fast; the process held no token.
        """
        key = author.user_sub, quota.bucket(name)  # a caller chooses the name, whatever its length
        if (held := self._held.get(key)) is None:
            held = self._held[key] = _LocalBucket()
        if not held.tokens:
            async with held.asking:  # one at a time: those that wait here take from what the first one got
                if not held.tokens and (at is not None or held.empty_until <= time.monotonic()):
                    await self._refill(held, quota, author, key[1], at)
            if not held.tokens:
                wait_s = max(0.001, held.empty_until - time.monotonic())
                scope, kind = quota.name.split("-")
                text = f"this {scope} has used up its {kind} for now"
                raise RateExceeded(text, wait_s, Standing(quota, 0, wait_s))
        held.tokens -= 1
        return Standing(quota, held.tokens + held.left, max(0.0, held.whole_at - time.monotonic()))

    async def _refill(
        self, held: _LocalBucket, quota: Quota, author: Author, bucket: bytes, at: datetime | None
    ) -> None:
        """Adds up to a block of tokens to those held here."""
        parameters = {
            "bucket": bucket,
            "size": quota.size,
            "every": timedelta(seconds=quota.every_s),
            "block": quota.block,
            "now": at,
        }
        async with self.database.fast(author.user_sub, author.authorised_at) as connection:
            (taken,) = await connection.all(take(), parameters)
        whole_in_s, now = float(taken.whole_in_s), time.monotonic()
        held.tokens += taken.granted
        held.whole_at = now + whole_in_s
        held.left = max(0, int(quota.size - whole_in_s / quota.every_s))
        if not taken.granted:
            held.empty_until = now + max(0.001, whole_in_s - (quota.size - 1) * quota.every_s)
