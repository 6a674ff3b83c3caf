"""Changes procedures after a later reward or run, or when cases are deleted: withdraws versions, retires lessons."""

from collections.abc import Sequence
from functools import cache
from uuid import UUID

from sqlalchemy import Integer, Text, Uuid, bindparam, cast, column, delete, exists, func, or_, select, update
from sqlalchemy.dialects.postgresql import ARRAY, aggregate_order_by, insert
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.dml import ReturningUpdate

from retrieval.database.rows import Rows
from retrieval.sealed import SIGN
from retrieval.tables.cases import cases
from retrieval.tables.failures import failures
from retrieval.tables.kinds import has_failed
from retrieval.tables.procedures import procedures, reflections
from writer.analysis.fixes import RunFailure
from writer.audit import Change, note
from writer.privacy.words import Words
from writer.procedures.versions import roll_back, version_update


async def withdraw_learned(
    connection: AsyncConnection, user_sub: str, actor: str, case_ids: Sequence[UUID]
) -> list[UUID]:
    """Withdraws versions learned from failed runs; returns the ids of procedures with a version rolled back.

    A version learned only from these runs is rolled back, and its parent becomes active, unless the parent was learned
    only from them, too; a later run may teach the same again. A version that other runs taught as well stays, with
    fewer sources; a revision needs others that did not fail. Failure lessons and pinned versions stay.
    """
    withdrawn: list[UUID] = []
    while rows := (await connection.execute(learned_from(user_sub, case_ids))).all():
        for row in rows:
            others = [each for each in row.source_case_ids if each not in case_ids]
            if row.parent_version is not None and others:  # a failed run asked for a revision, but does not support it
                failed = await failed_runs(connection, user_sub, others)
                others = [each for each in others if each not in failed]
            if others:
                gone = len(row.source_case_ids) - len(others)
                fewer = {"source_case_ids": others, "occurrences": max(row.occurrences - gone, 1)}
                await connection.execute(version_update(user_sub, row.id, row.version).values(fewer))
                continue
            await roll_back(connection, user_sub, row.id, row.version, row.parent_version)
            owner, details = (user_sub, row.agent_key), {"version": row.version}
            await note(connection, Change.of(owner, actor, "withdraw_procedure", row.id, **details))
            withdrawn.append(row.id)
    return list(dict.fromkeys(withdrawn))


async def ask_to_reflect(connection: AsyncConnection, user_sub: str, case_ids: Sequence[UUID]) -> None:
    """Queues those of these failed cases whose run used a procedure, for its revision; a case is never queued twice.

    A case that the worker has not finished yet is left out, because finishing it revises its procedures.
    """
    names = "user_sub", "id", "agent_key"
    used = select(*(cases.c[name] for name in names)).where(
        cases.c.user_sub == user_sub,
        cases.c.id.in_(case_ids),
        cases.c.status.not_in(["pending", "dead"]),
        func.cardinality(cases.c.used_procedure_ids) > 0,
    )
    await connection.execute(insert(reflections).from_select(names, used).on_conflict_do_nothing())


async def retire_lessons(connection: AsyncConnection, words: Words, agent_key: str, met: Sequence[RunFailure]) -> None:
    """Retires the lessons of an agent about failures without a fix, after a run fixed the failure.

    A lesson is about a failure if the run that taught it met the same error of the same tool. A retired lesson stays
    retired when a later run would teach it again; pinned lessons stay.

    Only lessons about the failures in ``met`` are looked at.
    """
    if not met:
        return
    parameters = {
        "owner": words.user_sub,
        "agent": agent_key,
        "signs": words.numbers(SIGN, [failure.sign.line for failure in met]),
        "tools": [f"tool {failure.sign.tool}" for failure in met],
    }
    for row in await connection.execute(_retirement(), parameters):
        owner = words.user_sub, agent_key
        await note(connection, Change.of(owner, "worker", "retire_procedure", row.id, version=row.version))


@cache
def _retirement() -> ReturningUpdate[tuple[UUID, int]]:
    owner, agent_key = bindparam("owner", type_=Text), bindparam("agent", type_=Text)
    lost, fixed = failures.alias("lost"), failures.alias("fixed")
    met = (
        func.unnest(bindparam("signs", type_=ARRAY(Integer)), bindparam("tools", type_=ARRAY(Text)))
        .table_valued(column("sign", Integer), column("tool", Text))
        .render_derived("met")
    )
    is_about = procedures.c.record["critical_contextual_cues"].has_key(met.c.tool)
    put_right = exists().where(
        lost.c.user_sub == owner,
        fixed.c.user_sub == owner,
        lost.c.case_id == procedures.c.case_id,
        lost.c.fix_id.is_(None),
        lost.c.sign == met.c.sign,
        or_(procedures.c.origin != "rules", is_about),
        fixed.c.agent_key == agent_key,
        fixed.c.sign == lost.c.sign,
        fixed.c.fix_id.is_not(None),
    )
    lessons = (
        procedures.c.user_sub == owner,
        procedures.c.agent_key == agent_key,
        procedures.c.kind == "failure_lesson",
        procedures.c.status == "active",
        ~procedures.c.pinned,
    )
    retired = update(procedures).where(*lessons, put_right).values(status="retired")
    return retired.returning(procedures.c.id, procedures.c.version)


async def failed_runs(connection: AsyncConnection, user_sub: str, case_ids: Sequence[UUID]) -> set[UUID]:
    """Returns those of these runs' cases that count as failed now, by the outcome or a trusted reward."""
    query = select(cases.c.id, cases.c.outcome, cases.c.reward, cases.c.reward_source)
    rows = await connection.execute(query.where(cases.c.user_sub == user_sub, cases.c.id.in_(case_ids)))
    return {row.id for row in rows if has_failed(row.outcome, row.reward, row.reward_source)}


def learned_from(user_sub: str, case_ids: Sequence[UUID]) -> Rows:
    """Returns the statement that selects and locks the active, unpinned scripts and fixes learned from these runs."""
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
