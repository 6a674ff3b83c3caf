"""Routes for procedures: search, list, compare versions, pin, retire and review."""

from typing import Annotated, Literal
from uuid import UUID

from fastapi import Query

from app.edge.dependencies import AnyAgent, Caller, Cursor, Limit, Parts
from app.edge.routers import api_router
from app.schemas.fields import Milliseconds, Share
from app.schemas.procedures import (
    PinIn,
    ProcedureOut,
    ProcedureSearchIn,
    ProcedureSearchOut,
    ProceduresOut,
    SampleOut,
    VersionChangesOut,
    VersionsOut,
)
from app.schemas.responses import response_of
from retrieval.errors import NotFound
from retrieval.pages import procedures as pages
from retrieval.pages.procedures import difference
from retrieval.procedures.find import ProcedureSearch
from retrieval.search.candidates import Filters
from retrieval.tables.kinds import ProcedureKind
from writer.procedures import curation
from writer.run import Tag

router = api_router("procedures", "/v1/procedures")

Version = Annotated[int, Query(ge=1, le=2**31 - 1)]


@router.post("/search")
async def search_procedures(body: ProcedureSearchIn, parts: Parts, caller: Caller) -> ProcedureSearchOut:
    """Returns active procedures with a similar trigger, the best first; attributes narrow the search."""
    await parts.admission.of_agent(caller, "reads", body.agent)
    search = ProcedureSearch(
        agent_key=body.agent,
        text=body.trigger,
        task_type=body.task_type,
        domain=body.domain,
        measures=body.measures,
        filters=Filters(body.tags),
        look=body.limit,
    )
    matches = await parts.reader.procedures(caller.user_sub, caller.authorised_at, search, body.min_similarity)
    return response_of(ProcedureSearchOut, matches)


@router.get("")
async def list_procedures(  # noqa: PLR0913, PLR0917 - each is a query parameter
    parts: Parts,
    caller: Caller,
    agent: AnyAgent = None,
    status: Literal["active", "any"] = "active",
    kind: ProcedureKind | None = None,
    query_kind: Annotated[Tag | None, Query()] = None,
    min_success_score: Annotated[Share | None, Query()] = None,
    max_duration_ms: Annotated[Milliseconds | None, Query()] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> ProceduresOut:
    """Returns a page of procedures, the newest first: the active version of each, or else the newest version."""
    measures = pages.Measures(query_kind, min_success_score, max_duration_ms)
    only = {"agent_key": agent, "kind": kind, "status": "active" if status == "active" else None}
    wanted = pages.page_of_procedures(caller.user_sub, only, measures, before=cursor, limit=limit)
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        rows = (await connection.execute(wanted)).mappings().all()
    page = [ProcedureOut.of(row) for row in rows]
    return ProceduresOut(procedures=page, next_cursor=str(page[-1].id) if len(page) == limit else None)


@router.get("/sample")
async def sample_procedures(
    parts: Parts,
    caller: Caller,
    agent: AnyAgent = None,
    n: Annotated[int, Query(ge=1, le=100)] = 10,
    seed: Annotated[int, Query(ge=0, le=2**31 - 1)] = 0,
) -> SampleOut:
    """Returns a random sample of n active procedures, for review."""
    drawn = pages.sample_of_procedures(caller.user_sub, agent, seed=seed, size=n)
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        rows = (await connection.execute(drawn)).mappings().all()
    return SampleOut(procedures=[ProcedureOut.of(row) for row in rows], seed=seed)


@router.get("/{procedure_id}")
async def get_procedure(
    procedure_id: UUID, parts: Parts, caller: Caller, version: Version | None = None
) -> ProcedureOut:
    """Returns the active version of a procedure, or the given version."""
    versions = (await list_versions(procedure_id, parts, caller)).versions
    wanted = (each for each in versions if (each.status == "active" if version is None else each.version == version))
    if (one := next(wanted, None)) is None:
        raise NotFound("no version of this procedure is active" if version is None else "no such version")
    return one


@router.get("/{procedure_id}/versions")
async def list_versions(procedure_id: UUID, parts: Parts, caller: Caller) -> VersionsOut:
    """Returns every version of a procedure, the newest first."""
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        rows = (await connection.execute(pages.versions_of(caller.user_sub, procedure_id))).mappings().all()
    if not rows:
        raise NotFound("no such procedure")
    return VersionsOut(versions=[ProcedureOut.of(row) for row in rows])


@router.get("/{procedure_id}/diff")
async def diff_versions(
    procedure_id: UUID,
    parts: Parts,
    caller: Caller,
    before: Annotated[Version, Query(alias="from")],
    after: Annotated[Version, Query(alias="to")],
) -> VersionChangesOut:
    """Compares two versions: changed fields, and steps added, removed or changed."""
    versions = {each.version: each for each in (await list_versions(procedure_id, parts, caller)).versions}
    if before not in versions or after not in versions:
        raise NotFound("no such version")
    changes = difference(versions[before].model_dump(), versions[after].model_dump())
    return VersionChangesOut.model_validate({"before": before, "after": after, "changes": changes})


@router.post("/{procedure_id}/pin")
async def pin_procedure(procedure_id: UUID, wanted: PinIn, parts: Parts, caller: Caller) -> ProcedureOut:
    """Pins a version, which then stays active through revisions and rollbacks, or unpins it."""
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        await curation.pin(connection, caller, procedure_id, wanted.version, pinned=wanted.pinned)
    return await get_procedure(procedure_id, parts, caller, wanted.version)


@router.post("/{procedure_id}/retire")
async def retire_procedure(procedure_id: UUID, parts: Parts, caller: Caller) -> ProcedureOut:
    """Takes the active version out of use; pinning any version restores the procedure."""
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        version = await curation.retire(connection, caller, procedure_id)
    return await get_procedure(procedure_id, parts, caller, version)


@router.post("/{procedure_id}/review")
async def review_procedure(procedure_id: UUID, body: curation.Review, parts: Parts, caller: Caller) -> ProcedureOut:
    """Stores a person's review of a version, in place of an earlier one."""
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        version = await curation.review(connection, caller, procedure_id, body)
    return await get_procedure(procedure_id, parts, caller, version)
