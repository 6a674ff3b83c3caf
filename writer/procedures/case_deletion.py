"""Handles procedures when cases are deleted: versions with the cases' words are deleted, the others stay usable."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import ARRAY, Uuid, cast, delete, func, select, update
from sqlalchemy.dialects.postgresql import aggregate_order_by
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.tables.procedures import procedures, reflections


async def forget_words(connection: AsyncConnection, user_sub: str, case_ids: Sequence[UUID]) -> None:
    """Deletes the versions of procedures that were learned or revised from these cases, and so contain their words.

    The cases leave the queue of lessons.
    If the active version of a procedure is deleted, its newest superseded version becomes active again; if a retired
    one is, and no version is active, that version becomes retired, so that the procedure stays out of use.
    """
    queued = delete(reflections).where(reflections.c.user_sub == user_sub, reflections.c.id.in_(case_ids))
    await connection.execute(queued)
    from_cases = procedures.c.user_sub == user_sub, procedures.c.case_id.in_(case_ids)
    status = func.min(procedures.c.status)  # "active" comes before "retired"
    known = (
        select(procedures.c.id, status)
        .where(
            procedures.c.user_sub == user_sub,
            procedures.c.id.in_(select(procedures.c.id).where(*from_cases)),
            procedures.c.status.in_(["active", "retired"]),
        )
        .group_by(procedures.c.id)
    )
    held: dict[str, list[UUID]] = {}
    for procedure_id, had in (await connection.execute(known)).all():
        held.setdefault(had, []).append(procedure_id)
    await connection.execute(delete(procedures).where(*from_cases))  # and the revisions of these versions
    for had, ids in held.items():
        mine = procedures.c.user_sub == user_sub, procedures.c.id.in_(ids)
        holding = select(procedures.c.id).where(*mine, procedures.c.status == had)
        newest = (
            select(procedures.c.id, func.max(procedures.c.version).label("version"))
            .where(*mine, procedures.c.status == "superseded", procedures.c.id.not_in(holding))
            .group_by(procedures.c.id)
            .subquery()
        )
        again = update(procedures).where(
            procedures.c.user_sub == user_sub,
            procedures.c.id == newest.c.id,
            procedures.c.version == newest.c.version,
        )
        await connection.execute(again.values(status=had))


async def forget_sources(connection: AsyncConnection, user_sub: str, case_ids: Sequence[UUID]) -> None:
    """Removes cases that are about to be deleted from the sources of the procedures that they were merged into."""
    ids = cast(list(case_ids), ARRAY(Uuid))
    merged = update(procedures).where(procedures.c.user_sub == user_sub, procedures.c.source_case_ids.overlap(ids))
    source = func.unnest(procedures.c.source_case_ids).table_valued("id", with_ordinality="place", name="source")
    source = source.render_derived()
    rest = select(func.array_agg(aggregate_order_by(source.c.id, source.c.place))).where(source.c.id.not_in(case_ids))
    none = cast([], ARRAY(Uuid))
    await connection.execute(merged.values(source_case_ids=func.coalesce(rest.scalar_subquery(), none)))


async def keep_without_case(connection: AsyncConnection, user_sub: str, case_ids: Sequence[UUID]) -> None:
    """Detaches versions of procedures from pruned cases, whose deletion would delete these versions, too."""
    learned = update(procedures).where(procedures.c.user_sub == user_sub, procedures.c.case_id.in_(case_ids))
    await connection.execute(learned.values(case_id=None))
