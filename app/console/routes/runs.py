"""Pages of runs that are sent step by step: the list, and one run with its findings."""

from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response

from app.console.page import PER_PAGE, ROOT, Looking, Page, show
from app.routes.findings import findings_in
from app.routes.runs import get_run, list_runs
from retrieval.findings.summary import standings
from retrieval.tables.kinds import RunStatus

router = APIRouter(prefix=ROOT, route_class=Page, include_in_schema=False)


@router.get("/runs")
async def runs_page(
    request: Request,
    looking: Looking,
    status: RunStatus | Literal[""] = "",
    cursor: Annotated[UUID | None, Query()] = None,
) -> Response:
    """Returns a page of the newest runs, all or those of one state."""
    page = await list_runs(
        looking.parts, looking.author, agent=looking.agent, status=status or None, limit=PER_PAGE, cursor=cursor
    )
    return show(request, "runs.html", looking, page=page, which=status)


@router.get("/runs/{run_id}")
async def run_page(request: Request, looking: Looking, run_id: UUID) -> Response:
    """Returns the page of one run: its findings with their state, and the steps that are in no case yet."""
    run = await get_run(run_id, looking.parts, looking.author)
    findings = await findings_in(run_id, looking.parts, looking.author)
    found = list(zip(findings, standings(findings), strict=True))
    return show(request, "run.html", looking, run=run, found=found)
