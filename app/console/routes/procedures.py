"""Pages of procedures: the list, and one procedure with its versions and actions."""

from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, HTTPException, Query, Request, Response
from pydantic import ValidationError

from app.console.page import PER_PAGE, ROOT, Form, Looking, Page, go, show
from app.console.routes.bank import be_sure
from app.routes.procedures import diff_versions, list_procedures, list_versions, pin_procedure, retire_procedure
from app.schemas.procedures import PinIn
from retrieval.tables.kinds import ProcedureKind

router = APIRouter(prefix=f"{ROOT}/procedures", route_class=Page, include_in_schema=False)

LARGEST_VERSION = 2**31 - 1
Version = Annotated[int | None, Query(ge=1, le=LARGEST_VERSION)]


@router.get("")
async def procedures_page(
    request: Request,
    looking: Looking,
    status: Literal["active", "any"] = "active",
    kind: ProcedureKind | Literal[""] = "",
    cursor: Annotated[UUID | None, Query()] = None,
) -> Response:
    """Returns a page of the newest procedures."""
    page = await list_procedures(
        looking.parts,
        looking.author,
        agent=looking.agent,
        status=status,
        kind=kind or None,
        limit=PER_PAGE,
        cursor=cursor,
    )
    return show(request, "procedures.html", looking, page=page, which=status, kind=kind)


@router.get("/{procedure_id}")
async def procedure_page(
    request: Request, looking: Looking, procedure_id: UUID, before: Version = None, after: Version = None
) -> Response:
    """Returns the page of a procedure: its active or newest version, all versions, and a comparison of two."""
    versions = (await list_versions(procedure_id, looking.parts, looking.author)).versions
    shown = next((each for each in versions if each.status == "active"), versions[0])
    changes = None
    if before is not None and after is not None:
        changes = await diff_versions(procedure_id, looking.parts, looking.author, before, after)
    return show(request, "procedure.html", looking, shown=shown, versions=versions, changes=changes)


@router.post("/{procedure_id}/pin")
async def pin(looking: Looking, form: Form, procedure_id: UUID) -> Response:
    """Pins or unpins a version."""
    try:
        wanted = PinIn(version=int(form.get("version", "")), pinned=form.get("pinned") == "yes")
    except (ValueError, ValidationError):
        raise HTTPException(422, "no such version") from None
    await pin_procedure(procedure_id, wanted, looking.parts, looking.author)
    return go(f"{ROOT}/procedures/{procedure_id}", agent=looking.agent)


@router.post("/{procedure_id}/retire")
async def retire(looking: Looking, form: Form, procedure_id: UUID) -> Response:
    """Takes the active version out of use, if the confirmation box is ticked."""
    be_sure(form)
    await retire_procedure(procedure_id, looking.parts, looking.author)
    return go(f"{ROOT}/procedures/{procedure_id}", agent=looking.agent)
