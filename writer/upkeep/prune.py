"""Prunes profiles: removes cases beyond a profile's limits, first from searches, a month later from the database.

It also deletes old decisions, procedures and ended runs, and sessions, checkpoints and facts without news.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

from sqlalchemy import CTE, Float, Select, Table, case, cast, delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.database.database import Database
from retrieval.tables.cases import cases
from retrieval.tables.decisions import decisions
from retrieval.tables.memories import facts
from retrieval.tables.procedures import procedures
from retrieval.tables.profiles import profiles
from retrieval.tables.runs import checkpoints, runs
from retrieval.tables.sessions import sessions
from writer.audit import Change, note
from writer.procedures.withdrawal import forget_sources, forget_words, keep_without_case
from writer.profiles import Profile, each_owner, in_every_profile, lock_profile
from writer.references import REFERENCES, clear_references
from writer.rewards.credit import keep_credit
from writer.rewards.proof import keep_judgements
from writer.upkeep.expiry import (
    LAST_USED,
    expired,
    expired_checkpoints,
    expired_procedures,
    long_silent,
    merged,
    old_decisions,
    older,
)

BATCH = 1_000
"""Maximum number of rows that one transaction prunes, unless each may have thousands of others."""
STALEST = 0.25
"""Freshness of the case that was used longest ago, 0 to 1; the case used last has 1."""


def crowded_out(user_sub: str, agent_key: str) -> Select[UUID]:
    """Returns a statement that selects the ready cases beyond the profile's ``window_size``, worst first."""
    bank = retention(user_sub, agent_key)
    best_first = bank.c.retention.desc(), bank.c.last_used.desc(), bank.c.id.desc()
    ranked = select(bank.c.id, func.row_number().over(order_by=best_first).label("rank")).cte("ranked")
    window = (
        select(profiles.c.window_size)
        .where(profiles.c.user_sub == user_sub, profiles.c.agent_key == agent_key)
        .scalar_subquery()
    )
    return select(ranked.c.id).where(ranked.c.rank > window).order_by(ranked.c.rank.desc())


def too_many_procedures(user_sub: str, agent_key: str, kept: int) -> Select[UUID]:
    """Returns a statement that selects the procedures beyond the ``kept`` best, the worst first; never a pinned one.

    A procedure's worth is the Beta(1, 1) posterior mean of the rewards of its uses, times its freshness, which is
    computed as for a case, see ``retention``.
    """
    mine = procedures.c.user_sub == user_sub, procedures.c.agent_key == agent_key
    used = func.max(func.greatest(procedures.c.created_at, procedures.c.last_used_at))
    expected = (1.0 + func.sum(procedures.c.use_reward)) / (2.0 + func.sum(procedures.c.uses))
    newer = func.row_number().over(order_by=(used.desc(), procedures.c.id.desc())) - 1
    freshness = 1.0 - (1.0 - STALEST) * cast(newer, Float) / cast(func.count().over(), Float)
    pinned = func.bool_or(procedures.c.pinned)
    every = select(procedures.c.id, (expected * freshness).label("worth"), pinned.label("pinned")).where(*mine)
    worth = every.group_by(procedures.c.id).subquery()
    best_first = worth.c.pinned.desc(), worth.c.worth.desc(), worth.c.id.desc()
    ranked = select(worth, func.row_number().over(order_by=best_first).label("rank")).subquery()
    crowded = select(ranked.c.id).where(ranked.c.rank > kept, ~ranked.c.pinned)
    return crowded.order_by(ranked.c.rank.desc())


def retention(user_sub: str, agent_key: str) -> CTE:
    """Returns a query of each ready case's id, last_used and retention: above 0, and higher is kept longer.

    ``retention = expected * freshness / (1 + (1 - expected) * ln(frequency)) / copy``, where

    * ``expected``: the Beta(1, 1) posterior mean of the case's own reward and of its reuses' rewards;
    * ``freshness``: 1 for the case that was made or used last, falling evenly by rank towards STALEST. The rank
      counts and not the age, so that a holiday costs no case. A case of a failed run stays about two thirds as long as
      one of a successful run, and a case that keeps helping stays longer than both;
    * ``frequency``: runs merged into the case and reuses; a frequent case with low rewards weighs less, else such cases
      would crowd out the others;
    * ``copy``: 1 for the best of the cases with the same plan and outcome, 2 for the next, … (diversity).
    """
    own = case((cases.c.reward.is_(None), 0.0), else_=1.0)
    earned = func.coalesce(cases.c.reward, 0.0) + cases.c.reuse_reward
    expected = cast(1.0 + earned, Float) / cast(2.0 + own + cases.c.reuse_count, Float)
    newer = func.row_number().over(order_by=(LAST_USED.desc(), cases.c.id.desc())) - 1
    freshness = 1.0 - (1.0 - STALEST) * cast(newer, Float) / cast(func.count().over(), Float)
    swamping = 1.0 + (1.0 - expected) * func.ln(cast(cases.c.occurrences + cases.c.reuse_count, Float))
    # runs without a plan did not do the same: only those of the same words are copies
    planless = case((func.cardinality(cases.c.plan) == 0, cases.c.message_hash))
    before_copies = select(
        cases.c.id,
        cases.c.plan,
        planless.label("planless"),
        cases.c.outcome,
        LAST_USED.label("last_used"),
        (expected * freshness / swamping).label("worth"),
    )
    ready = cases.c.user_sub == user_sub, cases.c.agent_key == agent_key, cases.c.status == "ready"
    worth = before_copies.where(*ready).cte("worth")
    alike = func.row_number().over(
        partition_by=(worth.c.plan, worth.c.planless, worth.c.outcome),
        order_by=(worth.c.worth.desc(), worth.c.last_used.desc(), worth.c.id.desc()),
    )
    return select(worth.c.id, worth.c.last_used, (worth.c.worth / alike).label("retention")).cte("retention")


KEPT = timedelta(days=30)
"""Time for which a pruned case can still be seen."""
DECISIONS_KEPT = timedelta(days=180)
"""Time after which a logged decision is deleted."""
CONTEXTS_KEPT = timedelta(days=30)
"""Time after which a logged decision loses the text that it answered with; training does not read the text."""
WITH_MANY_ROWS = 20
"""Maximum number of sessions, or of runs, that one transaction deletes: each may have 10,000 turns or steps."""
PROCEDURES_KEPT = 1_000
"""Maximum procedures of a profile, because every retrieve compares its query with the triggers of all procedures."""


@dataclass(frozen=True, slots=True)
class _Sweep:
    """One kind of rows that pruning removes.

    Attributes:
        pick: the statement that selects the rows' ids.
        why: the reason in the audit; None: the removal is not noted there.
        values: new columns of the rows; None: the rows are deleted.
        before: steps that come first in the same transaction, for the rows that refer to these.
        batch: maximum number of rows that one transaction removes.
    """

    table: Table
    pick: Select[UUID]
    why: str | None = None
    values: Mapping[str, object] | None = None
    before: Sequence[Callable[[AsyncConnection, str, Sequence[UUID]], Awaitable[None]]] = ()
    batch: int = BATCH


async def prune_all(database: Database, *, now: datetime | None = None, kept: timedelta = KEPT) -> Counter[str]:
    """Prunes every profile, and what users without one searched for; returns the numbers as ``prune`` does, summed.

    ``now`` is the time by which rows are too old; None: the time by the database's clock.

    Raises:
        DatabaseUnavailable, Exception: see ``in_every_profile``; what was pruned stays pruned.
    """
    total = Counter[str]()
    async for pruned in in_every_profile(database, partial(prune, database, now=now, kept=kept), each_owner(database)):
        total += pruned
    return total


async def prune(
    database: Database,
    profile: Profile,
    *,
    now: datetime | None = None,
    kept: timedelta = KEPT,
    procedures_kept: int = PROCEDURES_KEPT,
) -> Counter[str]:
    """Removes a profile's rows that are too old or too many, and returns their numbers.

    Merged, expired and least valuable cases are taken out of searches, and deleted after ``kept``. Pending and dead
    cases stay, however old, because the worker or an operator has yet to handle them. A procedure outlives the case
    that it was learned from, unless the case expired: then the procedure is deleted at once. ``now`` is the time by
    which rows are too old; None: the time at which the profile was read.

    The numbers are ``soft``, of cases taken out of searches, which can still be seen, ``hard``, of cases deleted, and
    those of the deleted rows of other tables, by their names.

    Raises:
        DatabaseUnavailable: what was pruned so far stays pruned.
    """
    user_sub, now = profile.user_sub, now or profile.seen_at
    mine = user_sub, profile.agent_key
    pruned = {"status": "pruned", "pruned_at": now}  # no search finds such cases, but they can still be seen
    detach = keep_without_case, forget_sources, keep_judgements
    long_pruned = older(mine, cases.c.pruned_at, now - kept).where(cases.c.status == "pruned")
    spoken = old_decisions(mine, now - CONTEXTS_KEPT).where(decisions.c.told.is_not(None))
    silent = long_silent(mine, now, sessions.c.last_turn_at, "session_ttl_days")
    sweeps = [
        ("soft", _Sweep(cases, merged(mine), "merged", pruned)),
        ("soft", _Sweep(cases, expired(mine, now), "ttl", pruned, (forget_words, forget_sources))),
        ("soft", _Sweep(cases, crowded_out(*mine), "window", pruned)),
        ("hard", _Sweep(cases, long_pruned, "deleted", before=detach)),
        ("decisions", _Sweep(decisions, old_decisions(mine, now - DECISIONS_KEPT), before=[keep_credit])),
        ("", _Sweep(decisions, spoken, values={"told": None})),
        ("procedures", _Sweep(procedures, expired_procedures(mine, now), "ttl")),
        ("procedures", _Sweep(procedures, too_many_procedures(*mine, procedures_kept), "window")),
        ("runs", _Sweep(runs, older(mine, runs.c.ended_at, now - kept), "ended", batch=WITH_MANY_ROWS)),
        ("sessions", _Sweep(sessions, silent, "ttl", batch=WITH_MANY_ROWS)),
        ("facts", _Sweep(facts, long_silent(mine, now, facts.c.last_told_at, "ttl_days"), "ttl")),
        ("checkpoints", _Sweep(checkpoints, expired_checkpoints(mine, now), "ttl")),
    ]
    async with database.as_user(user_sub, profile.seen_at) as connection:  # mostly there is nothing to remove
        rows = [sweep.pick.order_by(None).exists() for _, sweep in sweeps]
        due = (await connection.execute(select(*rows))).one()
    done = Counter[str]()
    for (name, sweep), is_due in zip(sweeps, due, strict=True):
        if is_due:
            done[name] += await _sweep(database, profile, sweep)
    del done[""]  # of these rows only a text is gone
    return done


async def _sweep(database: Database, profile: Profile, sweep: _Sweep) -> int:
    """Removes the rows of a sweep in transactions of at most ``sweep.batch`` rows; returns the number of rows."""
    done, table, pick = 0, sweep.table, sweep.pick.limit(sweep.batch)
    owner = profile.user_sub, profile.agent_key
    while True:
        async with database.as_user(profile.user_sub, profile.seen_at) as connection:
            # the worker may be about to merge a run into a case that goes here
            await lock_profile(connection, *owner)
            ids = picked = (await connection.scalars(pick)).all()
            if picked:  # a turn or a step may just be added to one of these, without the profile's lock
                rows = select(table.c.id).where(table.c.user_sub == profile.user_sub, table.c.id.in_(picked))
                await connection.execute(rows.order_by(*table.primary_key).with_for_update())
                still = set((await connection.scalars(pick)).all())
                ids = [each for each in picked if each in still]
            for prepare in sweep.before if ids else ():
                await prepare(connection, profile.user_sub, ids)
            mine = table.c.user_sub == profile.user_sub, table.c.id.in_(ids)
            if ids and sweep.values is not None:
                await connection.execute(update(table).where(*mine).values(sweep.values))
            elif ids:
                if table in REFERENCES:
                    await clear_references(table, connection, profile.user_sub, ids)
                await connection.execute(delete(table).where(*mine))
            if ids and sweep.why is not None:
                action = f"prune_{table.name.removesuffix('s')}"
                await note(connection, *(Change.of(owner, "prune", action, each, why=sweep.why) for each in ids))
        done += len(ids)
        if len(picked) < sweep.batch:
            return done
