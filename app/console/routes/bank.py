"""Pages of the bank: a search as the agent makes it, the list of cases, and one case."""

import csv
from dataclasses import replace
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, HTTPException, Query, Request, Response
from pydantic import ValidationError

from app.console.page import PER_PAGE, ROOT, Form, Looking, Page, go, show
from app.routes.bank import Status, get_case, list_cases, patch_case
from app.routes.loop import question_of
from app.schemas.bank import CasePatch
from app.schemas.loop import RetrieveIn

router = APIRouter(prefix=ROOT, route_class=Page, include_in_schema=False)


@router.get("/bank")
async def bank_page(
    request: Request,
    looking: Looking,
    q: Annotated[str, Query(max_length=2_000)] = "",
    status: Status = "ready",
    cursor: Annotated[UUID | None, Query()] = None,
) -> Response:
    """Returns the results of a query, or without one a page of the newest cases."""
    if not q.strip() or not looking.agent:
        page = await list_cases(
            looking.parts, looking.author, agent=looking.agent, status=status, limit=PER_PAGE, cursor=cursor
        )
        return show(request, "bank.html", looking, q=q, found=None, page=page, which=status)
    try:
        body = RetrieveIn(agent=looking.agent, query=q.strip())
    except ValidationError:
        raise HTTPException(422, "this text is not a valid query") from None
    await looking.parts.admission.of_agent(looking.author, "reads", body.agent)
    reader = replace(looking.parts.reader, explore=False)  # the slate of the policy in service, without random cases
    question = replace(question_of(body), logged=False)  # a person's search is no decision of the agent
    found = await reader.retrieve(looking.author.user_sub, looking.author.authorised_at, question)
    return show(request, "bank.html", looking, q=q, found=found, page=None, which=status)


@router.get("/cases/{case_id}")
async def case_page(request: Request, looking: Looking, case_id: UUID) -> Response:
    """Returns the page of one case: its run, and its reuse."""
    return show(request, "case.html", looking, case=await get_case(case_id, looking.parts, looking.author))


@router.post("/cases/{case_id}/tags")
async def tag_case(looking: Looking, form: Form, case_id: UUID) -> Response:
    """Replaces the tags of a case."""
    try:
        (tags,) = csv.reader([form.get("tags", "")], skipinitialspace=True)
        patch = CasePatch(tags=[tag.strip() for tag in tags if tag.strip()])
    except (ValidationError, csv.Error):
        raise HTTPException(422, "nothing was changed: at most 50 tags of at most 100 characters") from None
    await patch_case(case_id, patch, looking.parts, looking.author)
    return go(f"{ROOT}/cases/{case_id}", agent=looking.agent)


def be_sure(form: Form) -> None:
    """Refuses a form with an irreversible change unless its confirmation box is ticked.

    Raises:
        HTTPException: 422, the box is not ticked.
    """
    if form.get("sure") != "yes":
        raise HTTPException(422, "nothing was changed: tick the box next to the button to confirm")
