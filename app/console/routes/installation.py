"""Page for the operator: queue, jobs, policies and totals over all users, without names or texts."""

from asyncio import gather
from collections.abc import Sequence

from fastapi import APIRouter, HTTPException, Request, Response

from app.console.page import ROOT, Looking, Page, go, show
from app.jobs.metrics import state, table_sizes
from app.jobs.schedule import is_well, periods
from retrieval.database.rows import AnyRow
from retrieval.pages import statistics

router = APIRouter(prefix=ROOT, route_class=Page, include_in_schema=False)


@router.get("/installation")
async def installation_page(request: Request, looking: Looking) -> Response:
    """Returns the page with the numbers of the installation; there is none for a visitor who is not the operator."""
    if not looking.visit.is_operator:
        raise HTTPException(404, "no such page")
    parts = looking.parts

    async def totals() -> tuple[AnyRow, Sequence[AnyRow], Sequence[AnyRow], list[tuple[str, int]]]:
        async with parts.database.as_worker() as connection:
            who = (await connection.execute(statistics.users())).one()
            cases = (await connection.execute(statistics.cases_of_all())).all()
            policies = (await connection.execute(statistics.policies_of_all())).all()
            return who, cases, policies, await table_sizes(connection)

    seen, (who, cases, policies, sizes) = await gather(state(parts.database), totals())
    wanted = periods(parts.settings)
    return show(
        request,
        "installation.html",
        looking,
        seen=seen,
        bounds=parts.admission.backlog.bounds,
        late={job.name for job in seen.jobs if job.name in wanted and not is_well(job, wanted[job.name])},
        who=who,
        cases=cases,
        policies=policies,
        sizes=sizes,
    )


@router.get("/{rest:path}")
async def no_page(rest: str) -> Response:
    """Leads from /console/ to the console, and answers 404 for other paths that no page takes; it is the last route."""
    if not rest:
        return go(ROOT)
    raise HTTPException(404, "no such page")
