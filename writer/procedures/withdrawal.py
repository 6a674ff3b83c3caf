"""What becomes of procedures when the run that they were learned from turns out to have failed."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import ARRAY, Uuid, cast, select
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.database.rows import AnyRow, Rows
from retrieval.tables.cases import cases
from retrieval.tables.kinds import has_failed
from retrieval.tables.procedures import procedures
from writer.audit import Change, note
from writer.procedures.versions import roll_back, version_update


async def withdraw_learned(
    connection: AsyncConnection, user_sub: str, actor: str, case_ids: Sequence[UUID]
) -> list[UUID]:
    """Takes back what these runs taught to do, and returns the ids of the procedures that lost their active version.

    What was learned from them alone is rolled back, and the version before it, if any, is active again, unless these
    runs taught that one, too; a later run may teach the same anew. What other runs taught as well stays, with one run
    less behind it. Lessons of what to avoid stay, and so does what was pinned by hand.
    """
    withdrawn: list[UUID] = []
    while rows := (await connection.execute(learned_from(user_sub, case_ids))).all():
        for row in rows:
            if others := await _other_teachers(connection, user_sub, row, case_ids):
                fewer = {"source_case_ids": others, "occurrences": max(row.occurrences - 1, 1)}
                await connection.execute(version_update(user_sub, row.id, row.version).values(fewer))
            else:
                await _roll_back(connection, user_sub, actor, row)
                withdrawn.append(row.id)
    return list(dict.fromkeys(withdrawn))


async def _other_teachers(
    connection: AsyncConnection, user_sub: str, row: AnyRow, case_ids: Sequence[UUID]
) -> list[UUID]:
    """Returns the runs that still stand behind the version; of a revision, a failed run only asked for it."""
    others = [each for each in row.source_case_ids if each not in case_ids]
    if row.parent_version is None or not others:
        return others
    failed = await failed_runs(connection, user_sub, others)
    return [each for each in others if each not in failed]


async def failed_runs(connection: AsyncConnection, user_sub: str, case_ids: Sequence[UUID]) -> set[UUID]:
    """Returns those of the runs that count as failed now."""
    fates = select(cases.c.id, cases.c.outcome, cases.c.reward, cases.c.reward_source)
    found = await connection.execute(fates.where(cases.c.user_sub == user_sub, cases.c.id.in_(case_ids)))
    return {fate.id for fate in found if has_failed(fate.outcome, fate.reward, fate.reward_source)}


async def _roll_back(connection: AsyncConnection, user_sub: str, actor: str, row: AnyRow) -> None:
    await roll_back(connection, user_sub, row.id, row.version, row.parent_version)
    await note(
        connection,
        Change.of((user_sub, row.agent_key), actor, "withdraw_procedure", row.id, version=row.version),
    )


def learned_from(user_sub: str, case_ids: Sequence[UUID]) -> Rows:
    """Returns the statement for the active versions that these runs taught to follow; locks them."""
    names = ("id", "version", "agent_key", "parent_version", "source_case_ids", "occurrences")
    return (
        select(*(procedures.c[name] for name in names))
        .where(
            procedures.c.user_sub == user_sub,
            procedures.c.source_case_ids.overlap(cast(list(case_ids), ARRAY(Uuid))),
            procedures.c.status == "active",
            procedures.c.kind != "failure_lesson",
            ~procedures.c.pinned,
        )
        .order_by(procedures.c.id)
        .with_for_update()
    )
