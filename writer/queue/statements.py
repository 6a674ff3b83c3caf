"""SQL of the queues inside the tables of cases, sessions and memories: lease rows, hand them back, give up, requeue.

There is no queue table: a retained run, a session with unread turns and a memory without a vector are queued by the
status in their own rows.
Every statement here runs as the database's worker role, which may read the queue's columns and no contents.
On a cluster, a statement that names no user asks all shards, and says so. What bounds it there is the index on
pending rows, of which admission allows `PendingBounds.in_all` cases.
"""

from datetime import datetime, timedelta
from functools import cache
from typing import Literal
from uuid import UUID

from sqlalchemy import (
    Boolean,
    ColumnElement,
    DateTime,
    Double,
    Integer,
    Interval,
    ScalarSelect,
    Select,
    Table,
    Text,
    Update,
    Uuid,
    and_,
    any_,
    bindparam,
    case,
    cast,
    extract,
    func,
    literal,
    literal_column,
    or_,
    select,
    true,
    tuple_,
    union_all,
    update,
)
from sqlalchemy.dialects.postgresql import aggregate_order_by
from sqlalchemy.sql.dml import ReturningUpdate

from retrieval.tables.cases import cases, inserted_memories
from retrieval.tables.procedures import reflections
from writer.queue.lease import Lease, is_held

DIED = UUID(int=0)
"""Token in place of a lease that ran out: the row may have killed its worker, and is handled alone."""
TURNS = 4
"""Least number of users who share a batch, if so many have due rows."""
WORKERS_APART = 4
"""Rows examined for each row leased, so that workers that lease at the same moment each find unlocked rows."""
Ending = Literal["failed", "outage", "dead"]
"""End of an attempt without a result: a failure, an outage that is no fault of the row, or the last failure."""


@cache  # an idle worker claims all the time, and to build the statement takes longer than to run it
def claim(queue: Table) -> Update:
    """Returns a statement that leases up to ``batch`` waiting rows to a worker.

    Users take turns, by name, beginning with the first user after ``after``. A turn leases a user's longest waiting
    rows, up to a quarter of the batch: rows of one user are finished together, and no user waits for all rows of
    another. Where there are rows whose worker died with them, the batch is one of these alone, or has none of them
    if ``died_too`` is false. These are the statement's parameters, and so are ``token`` and ``lease``.
    """
    token, after = bindparam("token", type_=Uuid), bindparam("after", type_=Text)
    batch = bindparam("batch", type_=Integer)
    looked_at = batch * WORKERS_APART
    turns = select(_next_user(queue, after).label("user_sub"), literal(1).label("turn")).cte("turns", recursive=True)
    following = select(_next_user(queue, turns.c.user_sub), turns.c.turn + 1)
    turns = turns.union_all(following.where(turns.c.user_sub.is_not(None), turns.c.turn < batch))
    longest = [queue.c.available_at, queue.c.id]
    of_a_turn = func.greatest(1, batch // TURNS)
    theirs = (
        select(
            queue.c.id,
            ((func.row_number().over(order_by=longest) - 1) // of_a_turn).label("round"),
            _died(queue).label("died"),
        )
        .where(*_due(queue), queue.c.user_sub == turns.c.user_sub, queue.c.lease_token.is_distinct_from(token))
        .where(or_(bindparam("died_too", type_=Boolean), ~_died(queue)))
        .order_by(*longest)
        .limit(looked_at)
        .lateral("theirs")
    )
    waiting = (
        select(turns.c.user_sub, turns.c.turn, theirs.c.id, theirs.c.round, theirs.c.died)
        .join_from(turns, theirs, true())
        .order_by(theirs.c.round, turns.c.turn)
        .limit(looked_at)
        .subquery("waiting")
    )
    nth = func.row_number().over(partition_by=waiting.c.died, order_by=(waiting.c.round, waiting.c.turn))
    any_died = func.bool_or(waiting.c.died).over()
    waiting = select(waiting, nth.label("nth"), any_died.label("any_died")).subquery("numbered")
    is_next = or_(~waiting.c.any_died, and_(waiting.c.died, waiting.c.nth == 1))
    leased = (
        select(queue.c.user_sub, queue.c.id)
        .join(waiting, and_(waiting.c.user_sub == queue.c.user_sub, waiting.c.id == queue.c.id))
        .where(*_due(queue), is_next)  # due, again, for another worker may have taken it meanwhile
        .order_by(waiting.c.round, waiting.c.turn)
        .limit(batch)
        .with_for_update(of=queue, skip_locked=True)
    )
    return _leasing(queue, tuple_(queue.c.user_sub, queue.c.id).in_(leased), func.now())


def _leasing(queue: Table, which: ColumnElement[bool], now: ColumnElement[datetime]) -> Update:
    return (
        update(queue)
        .where(which)
        .values(
            lease_token=bindparam("token", type_=Uuid),
            available_at=func.now() + bindparam("lease", type_=Interval),
            attempts=queue.c.attempts + 1,
        )
        .returning(queue.c.user_sub, queue.c.id, queue.c.agent_key, queue.c.attempts, now.label("claimed_at"))
    )


@cache
def waiting_users(queue: Table) -> Select[str, bool]:
    """Returns a statement that selects up to ``batch`` users with due rows, by name, beginning after ``after``.

    ``batch`` and ``after`` are the statement's parameters. The second column tells whether a worker died with one of
    the user's rows. It asks all shards, each of which reads its pending rows and answers with ``batch`` users at most.
    """
    after, batch = bindparam("after", type_=Text), bindparam("batch", type_=Integer)
    due = select(queue.c.user_sub, func.bool_or(_died(queue))).where(*_due(queue), queue.c.user_sub > after)
    return due.group_by(queue.c.user_sub).order_by(queue.c.user_sub).limit(batch)


@cache
def claim_of_user(queue: Table) -> Update:
    """Returns a statement that leases up to ``most`` waiting rows of one user, for a cluster: they are in one shard.

    Its parameters are ``most``, ``whose`` (the user), ``token``, ``lease``, ``now``, because shards may not read the
    clock, and ``died``, whether to lease one of the rows whose worker died with them: then that one alone.
    """
    mine = queue.c.user_sub == bindparam("whose", type_=Text)
    token, most = bindparam("token", type_=Uuid), bindparam("most", type_=Integer)
    longest = (
        select(queue.c.id)
        .where(*_due(queue), mine, queue.c.lease_token.is_distinct_from(token))
        .where(_died(queue) == bindparam("died", type_=Boolean))
        .order_by(queue.c.available_at, queue.c.id)
        .limit(most)
        .with_for_update(skip_locked=True)
    )
    # an array is computed once; a plan may run a subquery after IN again, which locks further rows
    which = and_(mine, queue.c.id == any_(func.array(longest.scalar_subquery())))
    return _leasing(queue, which, bindparam("now", type_=DateTime(timezone=True)))


def _died(queue: Table) -> ColumnElement[bool]:
    return queue.c.lease_token.is_not_distinct_from(literal(DIED, Uuid))


def _due(queue: Table) -> tuple[ColumnElement[bool], ...]:
    return queue.c.status == literal_column("'pending'"), queue.c.available_at <= func.now()


def _next_user(queue: Table, after: ColumnElement[str]) -> ScalarSelect[str]:
    """Returns the subquery for the first user by name, after the user ``after``, with a due row; NULL for the last."""
    return select(func.min(queue.c.user_sub)).where(*_due(queue), queue.c.user_sub > after).scalar_subquery()


@cache
def due_in(*queues: Table) -> Select[*tuple[float | None, ...]]:
    """Returns the statement that selects, for each queue in a column, the seconds until a row is due.

    0: a row is due now; null: the queue is empty. It asks all shards; each reads its pending rows, up to the first due
    one, and answers with one row a queue.
    """
    waits = []
    for queue in queues:
        pending = queue.c.status == literal_column("'pending'")
        first = select(func.min(queue.c.available_at)).where(pending).scalar_subquery()
        left_s = cast(extract("epoch", first - func.now()), Double)
        waits.append(case((select(queue.c.id).where(*_due(queue)).exists(), 0.0), else_=left_s).label(queue.name))
    return select(*waits)


@cache
def end_expired(max_attempts: int, queue: Table = cases) -> ReturningUpdate[str]:
    """Returns a statement that ends leases that ran out, and selects the status that each of their rows has then.

    A row is dead after its last attempt; before, it is due. It asks all shards, each of which reads its pending rows.
    """
    is_last = queue.c.attempts >= max_attempts
    return (
        update(queue)
        .where(
            queue.c.status == "pending",
            queue.c.available_at <= func.now(),
            queue.c.lease_token != DIED,  # and not null, as it is of what was handed back
        )
        .values(
            status=case((is_last, "dead"), else_="pending"),
            last_error="the worker died with it",
            lease_token=case((~is_last, DIED)),
        )
        .returning(queue.c.status)
    )


def hand_back(held: Lease, error: str, delay: timedelta, ending: Ending, queue: Table = cases) -> Update:
    """Returns a statement that ends an attempt on a row: the row is due again after a delay, or it is dead.

    An attempt that ended in an outage does not count, unless it was the first: the metric of waiting rows counts a row
    without attempts only from the time when it was last due, and this one waits since before.
    """
    status = "dead" if ending == "dead" else "pending"
    attempts = func.greatest(queue.c.attempts - 1, 1) if ending == "outage" else queue.c.attempts
    ended = {"status": status, "available_at": func.now() + delay, "lease_token": None, "last_error": error}
    return update(queue).where(is_held(queue, held)).values(**ended, attempts=attempts)


def requeue_dead(user_sub: str | None = None, queue: Table = cases) -> Update:
    """Returns a statement that queues the dead rows of one user, or of all users, again, with zero attempts.

    For all users it asks all shards, each of which reads its dead rows.
    """
    dead = update(queue).where(queue.c.status == literal_column("'dead'"))
    if user_sub is not None:
        dead = dead.where(queue.c.user_sub == user_sub)
    return dead.values(status="pending", attempts=0, available_at=func.now(), lease_token=None).returning(queue.c.id)


def depth(*queues: Table) -> Select[str, int, datetime]:
    """Returns a statement that counts the queues' rows by status, pending or dead, and the time since the oldest waits.

    Without queues it counts cases, and memories that were inserted by SQL, which become cases. It asks all shards, each
    of which reads its pending and its dead rows, by an index each, and answers with two rows a table at most.
    """
    waiting = union_all(
        *(
            select(table.c.status, _waits_since(table).label("since")).where(table.c.status == literal_column(status))
            for table in queues or (cases, inserted_memories)
            for status in ("'pending'", "'dead'")
        )
    ).subquery("waiting")
    return (
        select(waiting.c.status, func.count().label("rows"), func.min(waiting.c.since).label("oldest"))
        .group_by(waiting.c.status)
        .order_by(waiting.c.status)
    )


def _waits_since(queue: Table) -> ColumnElement[datetime]:
    if queue is reflections:  # a run that waits for a language model is leased and released again and again
        return queue.c.created_at
    # a run of the past, which a backfill brings, has not waited since then; a lease ends later than now
    is_held_first = and_(queue.c.attempts == 1, queue.c.lease_token.is_not(None))
    first = or_(queue.c.attempts == 0, is_held_first)
    return case((first, func.least(queue.c.available_at, func.now())), else_=queue.c.created_at)


def backlog(user_bound: int, at_least: int) -> Select[int, int, int, list[str] | None, list[int] | None]:
    """Returns a statement that counts the pending cases and their users, and names the users with many.

    Columns: ``waiting``, the number of pending cases; ``bounded``, the same with at most ``user_bound`` cases of each
    user, so that one user's backfill does not count; ``users``, the number of users with pending cases; and ``names``
    and ``numbers``, the users with at least ``at_least`` pending cases, and how many they have. It asks all
    shards; each reads its pending cases and answers with a row for each of their users.
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
