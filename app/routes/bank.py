"""Routes for the owner of a bank: cases, profiles and the audit."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Literal, cast
from uuid import UUID

from fastapi import Query
from sqlalchemy import Row, RowMapping

from app.edge.dependencies import AgentPath, AnyAgent, Caller, Cursor, Limit, Parts
from app.edge.routers import api_router
from app.schemas.bank import (
    AuditEntry,
    AuditOut,
    CaseOut,
    CasePatch,
    CasesOut,
    ProfileOut,
    ProfilePatch,
    ProfilesOut,
    WholeCaseOut,
)
from app.schemas.responses import next_cursor
from retrieval.errors import NotFound
from retrieval.pages import listing
from retrieval.pages.procedures import procedure_of
from retrieval.procedures.lessons import NO_FAILURE, wrapped
from retrieval.tables.audit import audit
from retrieval.tables.cases import cases
from retrieval.tables.kinds import CaseStatus
from writer.privacy.names import nameable
from writer.rights.edit import delete_case, set_profile, set_tags

router = api_router("bank", "/v1")

Parent = Annotated[UUID | None, Query(description="return only subtasks and tool cases of this run")]
Status = Literal[CaseStatus, "any"]


@router.get("/cases")
async def list_cases(  # noqa: PLR0913, PLR0917 - each is a query parameter
    parts: Parts,
    caller: Caller,
    agent: AnyAgent = None,
    status: Status = "ready",
    parent: Parent = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> CasesOut:
    """Returns a page of cases, the newest first."""
    only = {"agent_key": agent, "status": None if status == "any" else status, "parent_case_id": parent}
    statement = listing.page_of(cases, caller.user_sub, only, before=cursor, limit=limit)
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        rows = (await connection.execute(statement)).mappings().all()
        words = await parts.keyring.find_for_page(connection, caller.user_sub) if rows else None
    shown = [CaseOut.model_validate(words.opened(row)) for row in rows if words is not None]
    return CasesOut(cases=shown, next_cursor=next_cursor(rows, limit))


@router.get("/cases/{case_id}")
async def get_case(case_id: UUID, parts: Parts, caller: Caller) -> WholeCaseOut:
    """Returns one case with its tool traces, turns, prompt snapshot and learned procedure."""
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        one = listing.one_of(cases, caller.user_sub, case_id).add_columns(cases.c.payload)
        row = (await connection.execute(one)).mappings().one_or_none()
        words = await parts.keyring.find(connection, caller.user_sub)
        learned = (await connection.execute(procedure_of(caller.user_sub, case_id))).one_or_none()
    if row is None or words is None:
        raise NotFound("no such case")
    sealed: dict[str, object]
    sealed = await asyncio.to_thread(words.open, "payload", row["payload"], case_id)  # may be megabytes
    procedure = cast("dict[str, object] | None", sealed.pop("procedure"))
    is_clean = row["lessons"] == "ready" and not row["error_count"]  # analysed, and no call failed
    if learned is not None:
        procedure = None if learned.withdrawn else wrapped(learned.kind, learned.record)
    elif is_clean or (procedure is not None and procedure["data"] is None):
        procedure = dict(NO_FAILURE)
    named: dict[str, object] = {"files": [], "plan_references": []}  # sealed where the run named some
    return WholeCaseOut.model_validate({**words.opened(row), **named, **sealed, "procedure": procedure})


@router.patch("/cases/{case_id}")
async def patch_case(case_id: UUID, patch: CasePatch, parts: Parts, caller: Caller) -> CaseOut:
    """Replaces the tags of a case."""
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        await set_tags(connection, parts.keyring, caller, case_id, patch.tags)
        row = (await connection.execute(listing.one_of(cases, caller.user_sub, case_id))).mappings().one()
        words = await parts.keyring.find(connection, caller.user_sub)
    if words is None:
        raise NotFound("no such case")
    return CaseOut.model_validate(words.opened(row))


@router.delete("/cases/{case_id}", status_code=204)
async def remove_case(case_id: UUID, parts: Parts, caller: Caller) -> None:
    """Deletes a case permanently, with the repeats that were merged into it.

    Its text is also blanked in its run, and in logged decisions with the same query or that served its run. Turns of
    its session stay until the session is deleted.
    """
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        await delete_case(connection, parts.keyring, caller, case_id)


@router.get("/profiles")
async def list_profiles(parts: Parts, caller: Caller) -> ProfilesOut:
    """Returns the profiles of the user, with their settings and case counts."""
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        rows = (await connection.execute(listing.every_profile(caller.user_sub))).mappings().all()
        counts = (await connection.execute(listing.cases_by_status(caller.user_sub))).all()
    return ProfilesOut(profiles=[_profile(row, counts) for row in rows])


@router.get("/profiles/{agent:path}")
async def get_profile(agent: AgentPath, parts: Parts, caller: Caller) -> ProfileOut:
    """Returns the settings of a profile and its number of cases."""
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        row = await listing.known_profile(connection, caller.user_sub, agent)
        counts = (await connection.execute(listing.cases_by_status(caller.user_sub, agent))).all()
    return _profile(row._mapping, counts)  # noqa: SLF001 - the public name of the row as a mapping


@router.put("/profiles/{agent:path}")
async def put_profile(agent: AgentPath, patch: ProfilePatch, parts: Parts, caller: Caller) -> ProfileOut:
    """Changes the settings in the body; others keep their value, or their default in a new profile."""
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        await set_profile(connection, caller, nameable(agent), patch.columns())
    parts.rewriting.learn(caller.user_sub, agent, None)
    return await get_profile(agent, parts, caller)


@router.get("/audit")
async def list_audit(
    parts: Parts, caller: Caller, agent: AnyAgent = None, limit: Limit = 50, cursor: Cursor = None
) -> AuditOut:
    """Returns a page of the audit: changes and their authors, the newest first."""
    statement = listing.page_of(audit, caller.user_sub, {"agent_key": agent}, before=cursor, limit=limit)
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        rows = (await connection.execute(statement)).mappings().all()
    return AuditOut(entries=list(map(AuditEntry.model_validate, rows)), next_cursor=next_cursor(rows, limit))


def _profile(row: RowMapping, counts: Sequence[Row[str, str, int]]) -> ProfileOut:
    shares = {part: row[f"{part}_share"] for part in ("session", "facts", "procedures")}
    cases = {count.status: count.cases for count in counts if count.agent_key == row["agent_key"]}
    return ProfileOut.model_validate({**row, "shares": shares, "cases": cases})
