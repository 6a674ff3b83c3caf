"""Counts uses and rewards of procedure versions from the log of decisions, and rolls back versions that do worse."""

from collections.abc import Sequence
from math import sqrt
from uuid import UUID

from sqlalchemy import ARRAY, ColumnElement, Subquery, Uuid, and_, any_, cast, func, literal, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.database.rows import Rows
from retrieval.search.credit import NOT_KNOWN, shared_credit
from retrieval.tables.decisions import decisions
from retrieval.tables.procedures import procedures
from writer.audit import Change, note
from writer.procedures.versions import roll_back

FEWEST_USES = 5.0
"""Least number of uses that a version and its parent must each have before they are compared."""
CLEAR_DIFFERENCE_SD = 1.64
"""Standard deviations by which two posterior means must differ to be significant: one side, 95 %."""


def clearly_worse(uses: float, use_reward: float, parent_uses: float, parent_use_reward: float) -> bool:
    """Returns whether a version has a significantly lower mean reward than its parent.

    Both must have FEWEST_USES, and the posterior means must differ by more than CLEAR_DIFFERENCE_SD standard deviations
    of their difference. A use is the version's share of a decision.
    """
    if min(uses, parent_uses) < FEWEST_USES:
        return False
    mean, variance = _posterior(uses, use_reward)
    parent_mean, parent_variance = _posterior(parent_uses, parent_use_reward)
    return parent_mean - mean > CLEAR_DIFFERENCE_SD * sqrt(parent_variance + variance)


def _posterior(uses: float, use_reward: float) -> tuple[float, float]:
    """Returns the mean reward of a version, and its variance, by a Beta(1, 1) posterior."""
    mean = (1 + use_reward) / (2 + uses)
    return mean, mean * (1 - mean) / (3 + uses)


async def credit_procedures(connection: AsyncConnection, user_sub: str, procedure_ids: Sequence[UUID]) -> None:
    """Recomputes the counters of all versions of these procedures, then rolls back those that do clearly worse.

    A version counts its share of each rewarded decision; ``retrieval.search.credit.shared_credit`` shares the reward
    among the procedures that the decision returned. The result depends only on the log, and on what ``keep_uses`` kept
    of decisions that pruning deleted, so it may be repeated.
    """
    if not procedure_ids:
        return
    await _lock(connection, user_sub, procedure_ids)
    showed = decisions.c.procedure_ids.overlap(cast(list(procedure_ids), ARRAY(Uuid)))
    mine = procedures.c.user_sub == user_sub, procedures.c.id.in_(procedure_ids)
    record = uses(user_sub, showed)
    counted = await connection.execute(
        update(procedures)
        .where(*mine, procedures.c.id == record.c.id, procedures.c.version == record.c.version)
        .values(
            uses=procedures.c.kept_uses + record.c.uses,
            use_reward=procedures.c.kept_use_reward + record.c.use_reward,
            last_used_at=func.now(),
        )
        .returning(procedures.c.id, procedures.c.version)
    )
    no_more = tuple_(procedures.c.id, procedures.c.version).not_in([tuple(row) for row in counted])
    kept = {"uses": procedures.c.kept_uses, "use_reward": procedures.c.kept_use_reward}
    await connection.execute(
        update(procedures).where(*mine, procedures.c.uses > procedures.c.kept_uses, no_more).values(kept)
    )
    await roll_back_worse(connection, user_sub, procedure_ids)


async def keep_uses(connection: AsyncConnection, user_sub: str, decision_ids: Sequence[UUID]) -> None:
    """Keeps the uses of procedures in these decisions; call it before pruning deletes the decisions."""
    mine = decisions.c.user_sub == user_sub, decisions.c.id.in_(decision_ids)
    procedure_ids = (await connection.scalars(select(func.unnest(decisions.c.procedure_ids)).where(*mine))).all()
    await _lock(connection, user_sub, procedure_ids)
    record = uses(user_sub, decisions.c.id.in_(decision_ids))
    await connection.execute(
        update(procedures)
        .where(
            procedures.c.user_sub == user_sub,
            procedures.c.id == record.c.id,
            procedures.c.version == record.c.version,
        )
        .values(
            kept_uses=procedures.c.kept_uses + record.c.uses,
            kept_use_reward=procedures.c.kept_use_reward + record.c.use_reward,
        )
    )


async def _lock(connection: AsyncConnection, user_sub: str, procedure_ids: Sequence[UUID]) -> None:
    """Locks all versions of these procedures, in a fixed order."""
    rows = select(procedures.c.id).where(procedures.c.user_sub == user_sub, procedures.c.id.in_(set(procedure_ids)))
    await connection.execute(rows.order_by(procedures.c.id, procedures.c.version).with_for_update())


def uses(user_sub: str, logged: ColumnElement[bool]) -> Subquery:
    """Returns a subquery with the uses of each version of a procedure and the sum of their rewards.

    ``logged`` is a condition on the decisions to be counted.

    Decisions older than a version do not count: its number may have belonged to another version, deleted since.
    """
    shown = (
        func.unnest(decisions.c.procedure_ids, decisions.c.procedure_versions)
        .table_valued("id", "version", name="shown")
        .render_derived()
        .lateral()
    )
    used = shown.c.id == any_(decisions.c.used_procedure_ids)
    shares = (  # before the join with procedures, because a deleted version keeps its share
        select(
            shown.c.id,
            shown.c.version,
            decisions.c.reward,
            decisions.c.created_at,
            shared_credit(used, NOT_KNOWN, [decisions.c.id]).label("share"),
        )
        .select_from(decisions.join(shown, literal(True)))
        .where(
            decisions.c.user_sub == user_sub,
            decisions.c.reward.is_not(None),
            logged,
        )
        .subquery()
    )
    version = and_(procedures.c.id == shares.c.id, procedures.c.version == shares.c.version)
    return (
        select(
            procedures.c.id,
            procedures.c.version,
            func.sum(shares.c.share).label("uses"),
            func.sum(shares.c.share * shares.c.reward).label("use_reward"),
        )
        .select_from(shares.join(procedures, version))
        .where(
            procedures.c.user_sub == user_sub,
            shares.c.created_at >= procedures.c.created_at,
        )
        .group_by(procedures.c.id, procedures.c.version)
        .subquery()
    )


async def roll_back_worse(connection: AsyncConnection, user_sub: str, procedure_ids: Sequence[UUID]) -> None:
    """Makes the parent active in place of each active version that does clearly worse; pinned versions stay."""
    for row in (await connection.execute(beside_parents(user_sub, procedure_ids))).all():
        if clearly_worse(row.uses, row.use_reward, row.parent_uses, row.parent_use_reward):
            await roll_back(connection, user_sub, row.id, row.version, row.parent_version)
            back = {"version": row.version, "to": row.parent_version}
            await note(
                connection, Change.of((user_sub, row.agent_key), "worker", "roll_back_procedure", row.id, **back)
            )


def beside_parents(user_sub: str, procedure_ids: Sequence[UUID]) -> Rows:
    """Returns the statement that selects and locks active versions, with the counters of each and of its parent."""
    parent = procedures.alias("parent")
    superseded = and_(
        parent.c.user_sub == procedures.c.user_sub,
        parent.c.id == procedures.c.id,
        parent.c.version == procedures.c.parent_version,
        parent.c.status == "superseded",
    )
    columns = ("id", "version", "agent_key", "parent_version", "uses", "use_reward")
    return (
        select(
            *(procedures.c[name] for name in columns),
            parent.c.uses.label("parent_uses"),
            parent.c.use_reward.label("parent_use_reward"),
        )
        .join(parent, superseded)
        .where(
            procedures.c.user_sub == user_sub,
            procedures.c.id.in_(procedure_ids),
            procedures.c.status == "active",
            ~procedures.c.pinned,
        )
        .order_by(procedures.c.id)
        .with_for_update()
    )
