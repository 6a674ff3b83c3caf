"""The queue inside the tables of cases, sessions and memories: claim with a lease, hand back later, give up, requeue.

A row is its own entry: of a run that was retained, of a session with turns that nobody has read yet, or of a memory
without its vector.
Every statement here runs as the worker role, which sees who waits and nothing of what they wrote.
"""

import random
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Integer,
    ScalarSelect,
    Select,
    Table,
    Update,
    and_,
    case,
    cast,
    func,
    literal,
    literal_column,
    select,
    true,
    tuple_,
    update,
)
from sqlalchemy.dialects.postgresql import aggregate_order_by

from retrieval.tables.cases import cases
from writer.queue.lease import Lease, is_held

MOST_DOUBLINGS = 20
"""Most doublings of a delay: an outage may fail a thousand attempts, and 2 to that power is no float."""
WORKERS_APART = 4
"""Batches that are looked at for one, so that workers which claim at the same moment find something each."""


def claim(lease_token: UUID, lease: timedelta, batch: int, after: str = "", queue: Table = cases) -> Update:
    """Returns the statement that leases up to ``batch`` waiting rows to a worker, their users taking turns.

    The turns go by name, to the next users after ``after``: each of them gives the case that waits longest, then each
    the second, and so on. So nobody waits behind all that another has retained.
    """
    turns = select(_next_user(queue, literal(after)).label("user_sub"), literal(1).label("turn")).cte(
        "turns", recursive=True
    )
    following = select(_next_user(queue, turns.c.user_sub), turns.c.turn + 1)
    turns = turns.union_all(following.where(turns.c.user_sub.is_not(None), turns.c.turn < batch))
    longest = [queue.c.available_at, queue.c.id]
    theirs = (
        select(queue.c.id, func.row_number().over(order_by=longest).label("round"))
        .where(*_due(queue), queue.c.user_sub == turns.c.user_sub, queue.c.lease_token.is_distinct_from(lease_token))
        .order_by(*longest)
        .limit(WORKERS_APART * batch)
        .lateral("theirs")
    )
    waiting = (
        select(turns.c.user_sub, turns.c.turn, theirs.c.id, theirs.c.round)
        .join_from(turns, theirs, true())
        .order_by(theirs.c.round, turns.c.turn)
        .limit(WORKERS_APART * batch)
        .subquery("waiting")
    )
    leased = (
        select(queue.c.user_sub, queue.c.id)
        .join(waiting, and_(waiting.c.user_sub == queue.c.user_sub, waiting.c.id == queue.c.id))
        .where(*_due(queue))  # again, for another worker may have taken it meanwhile
        .order_by(waiting.c.round, waiting.c.turn)
        .limit(batch)
        .with_for_update(of=queue, skip_locked=True)
    )
    return (
        update(queue)
        .where(tuple_(queue.c.user_sub, queue.c.id).in_(leased))
        .values(lease_token=lease_token, available_at=func.now() + lease, attempts=queue.c.attempts + 1)
        .returning(queue.c.user_sub, queue.c.id, queue.c.agent_key, queue.c.attempts, func.now().label("claimed_at"))
    )


def _due(queue: Table) -> tuple[ColumnElement[bool], ...]:
    return queue.c.status == literal_column("'pending'"), queue.c.available_at <= func.now()


def _next_user(queue: Table, after: ColumnElement[str]) -> ScalarSelect[str]:
    """The first user after that one, by name, of whom a row is due; NULL where there is none."""
    return select(func.min(queue.c.user_sub)).where(*_due(queue), queue.c.user_sub > after).scalar_subquery()


def give_up_on_expired(max_attempts: int, queue: Table = cases) -> Update:
    """Returns the statement that gives up on rows whose last attempt never came back."""
    return (
        update(queue)
        .where(
            queue.c.status == "pending",
            queue.c.available_at <= func.now(),
            queue.c.attempts >= max_attempts,
            queue.c.lease_token.is_not(None),  # what was handed back has none
        )
        .values(status="dead", last_error="the worker died with it", lease_token=None)
    )


def renew(held: Lease, lease: timedelta, queue: Table = cases) -> Update:
    """Returns the statement that begins the lease again; it changes no row where another worker has it."""
    return update(queue).where(is_held(queue, held)).values(available_at=func.now() + lease)


def backoff(attempts: int, first_s: float, longest_s: float, rng: random.Random) -> timedelta:
    """Returns how long what failed so often, at least once, is to wait: doubled each time, and half of it by lot."""
    doublings = min(attempts - 1, MOST_DOUBLINGS)
    delay_s = min(longest_s, first_s * 2**doublings)
    return timedelta(seconds=delay_s * (0.5 + 0.5 * rng.random()))


def hand_back(held: Lease, error: str, delay: timedelta, *, dead: bool, queue: Table = cases) -> Update:
    """Returns the statement that ends a failed attempt: to be tried again after the delay, or dead."""
    status = "dead" if dead else "pending"
    ended = {"status": status, "available_at": func.now() + delay, "lease_token": None, "last_error": error}
    return update(queue).where(is_held(queue, held)).values(ended)


def requeue_dead(user_sub: str | None = None, queue: Table = cases) -> Update:
    """Returns the statement that queues the dead rows again, of one user or of all, with their attempts forgotten."""
    dead = update(queue).where(queue.c.status == "dead")
    if user_sub is not None:
        dead = dead.where(queue.c.user_sub == user_sub)
    return dead.values(status="pending", attempts=0, available_at=func.now(), lease_token=None).returning(queue.c.id)


def depth() -> Select[str, int, datetime]:
    """Returns the statement for how many cases there are of each status, and since when the first one waits."""
    # a run of the past, which a backfill brings, has not waited since then
    since = case((cases.c.attempts == 0, cases.c.available_at), else_=cases.c.created_at)
    return (
        select(cases.c.status, func.count().label("cases"), func.min(since).label("oldest"))
        .where(cases.c.status.in_(["pending", "dead"]))
        .group_by(cases.c.status)
        .order_by(cases.c.status)
    )


def backlog(user_bound: int, at_least: int) -> Select[int, int, int, list[str] | None, list[int] | None]:
    """Returns the statement for how much waits, of how many users, and who has much: names and numbers.

    What a user has beyond ``user_bound``, as by a backfill, counts in ``waiting`` and not in ``bounded``; who has fewer
    than ``at_least`` is not named.
    """
    number = func.count().label("number")
    waiting = (
        select(cases.c.user_sub, number)
        .where(cases.c.status == literal_column("'pending'"))
        .group_by(cases.c.user_sub)
        .subquery("waiting")
    )
    many = waiting.c.number >= at_least
    return select(
        cast(func.coalesce(func.sum(waiting.c.number), 0), Integer).label("waiting"),
        cast(func.coalesce(func.sum(func.least(waiting.c.number, user_bound)), 0), Integer).label("bounded"),
        func.count().label("users"),
        func.array_agg(aggregate_order_by(waiting.c.user_sub, waiting.c.user_sub)).filter(many).label("names"),
        func.array_agg(aggregate_order_by(waiting.c.number, waiting.c.user_sub)).filter(many).label("numbers"),
    )
