"""The bank: a search as an agent would make it, the cases, and one case with its record, its tags and its end."""

from dataclasses import replace
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, HTTPException, Query, Request, Response
from pydantic import ValidationError

from app.console.page import ROOT, Form, Looking, Page, Visitor, go, show
from app.routes.bank import Status, get_case, list_cases, patch_case, remove_case
from app.routes.loop import question_of
from app.schemas.bank import CasePatch
from app.schemas.loop import RetrieveIn
from retrieval.ranking.retrieved import Retrieved

router = APIRouter(prefix=ROOT, route_class=Page, include_in_schema=False)

PER_PAGE = 25


@router.get("/bank")
async def bank_page(
    request: Request,
    looking: Looking,
    q: Annotated[str, Query(max_length=2_000)] = "",
    status: Status = "ready",
    cursor: Annotated[UUID | None, Query()] = None,
) -> Response:
    """Returns what a query finds, if there is one, and else a page of the newest cases."""
    found = await _found(looking, q.strip()) if q.strip() and looking.agent else None
    page = None
    if found is None:
        page = await list_cases(
            looking.parts, looking.author, agent=looking.agent, status=status, limit=PER_PAGE, cursor=cursor
        )
    return show(request, "bank.html", looking, q=q, found=found, page=page, which=status)


async def _found(looking: Visitor, query: str) -> Retrieved:
    """Returns what the agent would be shown, by the order that serves, without a lot; it leaves no trace in the log."""
    try:
        asked = RetrieveIn(agent=looking.agent or "", query=query)
    except ValidationError:
        raise HTTPException(422, "this cannot be searched for") from None
    await looking.parts.admission.of_agent(looking.author, "reads", asked.agent)
    reader = replace(looking.parts.reader, explore=False)
    question = replace(question_of(asked), logged=False)
    return await reader.retrieve(looking.author.user_sub, looking.author.authorised_at, question)


@router.get("/cases/{case_id}")
async def case_page(request: Request, looking: Looking, case_id: UUID) -> Response:
    """Returns one case with everything that is kept of its run, and what came of its reuse."""
    return show(request, "case.html", looking, case=await get_case(case_id, looking.parts, looking.author))


@router.post("/cases/{case_id}/tags")
async def tag_case(looking: Looking, form: Form, case_id: UUID) -> Response:
    """Replaces the tags of a case."""
    tags = [tag.strip() for tag in form.get("tags", "").split(",")]
    try:
        patch = CasePatch(tags=[tag for tag in tags if tag])
    except ValidationError:
        raise HTTPException(422, "at most 50 tags, each short") from None
    await patch_case(case_id, patch, looking.parts, looking.author)
    return go(f"{ROOT}/cases/{case_id}", agent=looking.agent)


@router.post("/cases/{case_id}/delete")
async def delete_case(looking: Looking, form: Form, case_id: UUID) -> Response:
    """Deletes a case for good, once the box beside the button is ticked."""
    be_sure(form)
    await remove_case(case_id, looking.parts, looking.author)
    return go(f"{ROOT}/bank", agent=looking.agent)


def be_sure(form: Form) -> None:
    """Refuses a form that cannot be taken back, unless its box is ticked.

    Raises:
        HTTPException: 422, it is not.
    """
    if form.get("sure") != "yes":
        raise HTTPException(422, "nothing was changed: tick the box beside the button if you are sure")
