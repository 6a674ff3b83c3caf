"""What becomes of procedures when cases are deleted: versions made of their words go, and what is left stays usable."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import ARRAY, Uuid, cast, delete, func, select, update
from sqlalchemy.dialects.postgresql import aggregate_order_by
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.tables.procedures import procedures


async def forget_words(connection: AsyncConnection, user_sub: str, case_ids: Sequence[UUID]) -> None:
    """Deletes the versions that are made of the words of these cases, with all that revised them.

    A procedure that so loses its active version goes back to the newest one that it superseded.
    """
    mine = procedures.c.user_sub == user_sub, procedures.c.case_id.in_(case_ids)
    gone = delete(procedures).where(*mine).returning(procedures.c.id)
    ids = set((await connection.scalars(gone)).all())
    if ids:
        await _bring_back(connection, user_sub, list(ids))


async def forget_sources(connection: AsyncConnection, user_sub: str, case_ids: Sequence[UUID]) -> None:
    """Takes cases that are about to go off the sources of the procedures that they were merged into."""
    ids = cast(list(case_ids), ARRAY(Uuid))
    merged = update(procedures).where(procedures.c.user_sub == user_sub, procedures.c.source_case_ids.overlap(ids))
    source = func.unnest(procedures.c.source_case_ids).table_valued("id", with_ordinality="place", name="source")
    source = source.render_derived()
    rest = select(func.array_agg(aggregate_order_by(source.c.id, source.c.place))).where(source.c.id.not_in(case_ids))
    none = cast([], ARRAY(Uuid))
    await connection.execute(merged.values(source_case_ids=func.coalesce(rest.scalar_subquery(), none)))


async def keep_without_case(connection: AsyncConnection, user_sub: str, case_ids: Sequence[UUID]) -> None:
    """Lets the versions made of these cases outlive them."""
    made = update(procedures).where(procedures.c.user_sub == user_sub, procedures.c.case_id.in_(case_ids))
    await connection.execute(made.values(case_id=None))


async def _bring_back(connection: AsyncConnection, user_sub: str, procedure_ids: Sequence[UUID]) -> None:
    mine = procedures.c.user_sub == user_sub, procedures.c.id.in_(procedure_ids)
    active = select(procedures.c.id).where(*mine, procedures.c.status == "active")
    newest = (
        select(procedures.c.id, func.max(procedures.c.version).label("version"))
        .where(*mine, procedures.c.status == "superseded", procedures.c.id.not_in(active))
        .group_by(procedures.c.id)
        .subquery()
    )
    again = update(procedures).where(
        procedures.c.user_sub == user_sub,
        procedures.c.id == newest.c.id,
        procedures.c.version == newest.c.version,
    )
    await connection.execute(again.values(status="active"))
