"""The installation, for its operator: the queue, the jobs, policies and totals of all users; no name, and no word."""

from fastapi import APIRouter, HTTPException, Request, Response

from app.console.page import ROOT, Operating, Page, show
from app.metrics import state, table_sizes
from app.schedule import is_well, periods
from retrieval import statistics

router = APIRouter(prefix=ROOT, route_class=Page, include_in_schema=False)


@router.get("/installation")
async def installation_page(request: Request, operating: Operating) -> Response:
    """Returns the numbers of the installation."""
    parts = operating.parts
    seen = await state(parts.database)
    async with parts.database.as_worker() as connection:
        who = (await connection.execute(statistics.users())).one()
        cases = (await connection.execute(statistics.cases_of_all())).all()
        policies = (await connection.execute(statistics.policies_of_all())).all()
        sizes = await table_sizes(connection)
    wanted = periods(parts.settings)
    return show(
        request,
        "installation.html",
        operating,
        seen=seen,
        bounds=parts.admission.backlog.bounds,
        late={job.name for job in seen.jobs if job.name in wanted and not is_well(job, wanted[job.name])},
        who=who,
        cases=cases,
        policies=policies,
        sizes=sizes,
    )


@router.get("/{rest:path}")
async def no_page(rest: str) -> Response:  # noqa: ARG001 - any path
    """Answers that there is no such page: the last route, for whatever no other one takes."""
    raise HTTPException(404, "no such page")
