"""Stores versions of procedures: a new procedure, one more run of a known procedure, or the next version of one."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from uuid import UUID

import uuid_utils.compat as uuids
from prometheus_client import Counter
from sqlalchemy import Update, case, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from policy.channels import searchable
from retrieval.database.rows import AnyRow, Rows
from retrieval.pages.procedures import versions_of
from retrieval.ports import Vector as UnitVector
from retrieval.tables.cases import MAX_SEARCH_TEXT_CHARS
from retrieval.tables.procedures import procedures
from writer.audit import Change, note
from writer.procedures.duplicates import find_duplicate
from writer.procedures.learn_from_run import UsedVersion
from writer.procedures.ports import ProcedureDraft, Source
from writer.run import PlannedScript, ProcedureData, ScriptData
from writer.vectors import as_text, stored_later

LEARNED = Counter("casebank_procedures_learned_total", "New procedures and revisions, repeats left out", ["kind"])

MOST_SOURCES = 200
_CONTENT = [each.name for each in fields(ProcedureDraft)]
"""Columns of a version that are its content, as in a draft."""
_ACTOR = "worker"
_INSERT = insert(procedures).values(embedding=stored_later("vector"))


async def add(connection: AsyncConnection, source: Source, draft: ProcedureDraft, vector: UnitVector | None) -> None:
    """Stores a draft as a new procedure, or counts one more run for the stored procedure that it repeats.

    A retired procedure counts the run, too, and stays retired. The caller must hold the profile's lock.
    """
    known = await find_duplicate(connection, source, draft, vector)
    if known is None:
        procedure_id = uuids.uuid7()
        await _insert(connection, source, draft, vector, {"id": procedure_id, "version": 1})
        await note(connection, Change.of(source.owner, _ACTOR, "add_procedure", procedure_id, kind=draft.kind))
        LEARNED.labels(draft.kind).inc()
        return
    newest = case(
        (func.cardinality(procedures.c.source_case_ids) >= MOST_SOURCES, procedures.c.source_case_ids[2:MOST_SOURCES]),
        else_=procedures.c.source_case_ids,
    )
    sources = func.array_append(newest, source.case_id)
    merged = version_update(source.user_sub, known.id, known.version)
    await connection.execute(merged.values(occurrences=procedures.c.occurrences + 1, source_case_ids=sources))
    await note(connection, Change.of(source.owner, _ACTOR, "merge_procedure", known.id, case_id=str(source.case_id)))


async def revise(
    connection: AsyncConnection, source: Source, used: UsedVersion, draft: ProcedureDraft, vector: UnitVector | None
) -> None:
    """Stores a revision as the next version of the procedure, active in place of the version that the run used.

    Does nothing if the used version is pinned or no longer active, or if an earlier version had the same record.
    """
    rows = await locked_versions(connection, source.user_sub, used.id)
    parent = next((row for row in rows if row.version == used.version), None)
    record = draft.record.model_dump(mode="json")
    if parent is None or parent.status != "active" or parent.pinned or any(row.record == record for row in rows):
        return
    await connection.execute(version_update(source.user_sub, used.id, used.version).values(status="superseded"))
    key = {"id": used.id, "version": rows[0].version + 1, "parent_version": used.version}
    inherited = {"source_case_ids": [*parent.source_case_ids[1 - MOST_SOURCES :], source.case_id]}
    await _insert(connection, source, draft, vector, {**key, **inherited})
    await note(connection, Change.of(source.owner, _ACTOR, "revise_procedure", used.id, version=key["version"]))
    LEARNED.labels(draft.kind).inc()


async def locked_versions(connection: AsyncConnection, user_sub: str, procedure_id: UUID) -> Sequence[AnyRow]:
    """Returns every version of the procedure, the newest first, and locks them until the transaction ends."""
    return (await connection.execute(versions_of(user_sub, procedure_id).with_for_update(of=procedures))).all()


async def revisable(
    connection: AsyncConnection, user_sub: str, agent_key: str, procedure_ids: Sequence[UUID]
) -> list[UsedVersion]:
    """Returns the active versions of these procedures that a failed run may revise, in the order of their ids."""
    versions = []
    for row in (await connection.execute(used_versions(user_sub, agent_key, procedure_ids))).mappings():
        script = PlannedScript if "plan" in row["record"] else ScriptData
        model = ProcedureData if "initial_failure_summary" in row["record"] else script
        content = {name: row[name] for name in _CONTENT} | {"record": model.model_construct(**row["record"])}
        versions.append(UsedVersion(row["id"], row["version"], ProcedureDraft(**content)))
    return versions


def used_versions(user_sub: str, agent_key: str, procedure_ids: Sequence[UUID]) -> Rows:
    """Returns the statement that selects the active versions that a failed run may revise: of procedures it used."""
    return (
        select(*(procedures.c[name] for name in ("id", "version", *_CONTENT)))
        .where(
            procedures.c.user_sub == user_sub,
            procedures.c.agent_key == agent_key,
            procedures.c.id.in_(procedure_ids),
            procedures.c.status == "active",
            procedures.c.kind != "failure_lesson",
            ~procedures.c.pinned,
        )
        .order_by(procedures.c.id)
    )  # at most one version of each is active


def version_update(user_sub: str, procedure_id: UUID, version: int) -> Update:
    """Returns an update statement for the row of one version; the caller adds the values."""
    return update(procedures).where(
        procedures.c.user_sub == user_sub, procedures.c.id == procedure_id, procedures.c.version == version
    )


async def roll_back(
    connection: AsyncConnection, user_sub: str, procedure_id: UUID, version: int, parent_version: int | None
) -> None:
    """Marks a version as rolled back; its parent becomes active again if it still has the status ``superseded``."""
    await connection.execute(version_update(user_sub, procedure_id, version).values(status="rolled_back"))
    if parent_version is not None:
        parent = version_update(user_sub, procedure_id, parent_version)
        await connection.execute(parent.where(procedures.c.status == "superseded").values(status="active"))


async def _insert(
    connection: AsyncConnection,
    source: Source,
    draft: ProcedureDraft,
    vector: UnitVector | None,
    key: Mapping[str, object],
) -> None:
    lines = (draft.trigger, draft.record.procedure_name, draft.record.semantic_description, draft.task_type)
    values = {
        "user_sub": source.user_sub,
        "agent_key": source.agent_key,
        "case_id": source.case_id,
        **{name: getattr(draft, name) for name in _CONTENT},
        "record": draft.record.model_dump(mode="json"),
        "source_case_ids": [source.case_id],
        "search_text": searchable("\n".join(lines))[:MAX_SEARCH_TEXT_CHARS],
        "embedding_model": None if vector is None else source.model,
        "vector": None if vector is None else as_text(vector),
    }
    await connection.execute(_INSERT, {**values, **key})
