"""The installation, for its operator: the queue, the jobs, policies and totals of all users; no name, and no word."""

from asyncio import gather
from collections.abc import Sequence

from fastapi import APIRouter, HTTPException, Request, Response

from app.console.page import ROOT, Operating, Page, show
from app.jobs.metrics import state, table_sizes
from app.jobs.schedule import is_well, periods
from app.runtime import Runtime
from retrieval.database.rows import AnyRow
from retrieval.pages import statistics

router = APIRouter(prefix=ROOT, route_class=Page, include_in_schema=False)


@router.get("/installation")
async def installation_page(request: Request, operating: Operating) -> Response:
    """Returns the numbers of the installation."""
    parts = operating.parts
    seen, (who, cases, policies), sizes = await gather(state(parts.database), _totals(parts), _sizes(parts))
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


async def _totals(parts: Runtime) -> tuple[AnyRow, Sequence[AnyRow], Sequence[AnyRow]]:
    """Returns the row of who there is, and those of all users' cases and policies."""
    async with parts.database.as_worker() as connection:
        who = (await connection.execute(statistics.users())).one()
        cases = (await connection.execute(statistics.cases_of_all())).all()
        return who, cases, (await connection.execute(statistics.policies_of_all())).all()


async def _sizes(parts: Runtime) -> list[tuple[str, int]]:
    async with parts.database.as_worker() as connection:
        return await table_sizes(connection)


@router.get("/{rest:path}")
async def no_page(rest: str) -> Response:  # noqa: ARG001 - any path
    """Answers that there is no such page: the last route, for whatever no other one takes."""
    raise HTTPException(404, "no such page")
