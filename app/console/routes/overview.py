"""The overview: the effect of memory, the cases by state, the queue, and incomplete answers."""

from asyncio import gather
from collections.abc import Sequence
from datetime import UTC, datetime

from fastapi import APIRouter, Request, Response

from app.console.impact import LEAST_FOR_POINT, curves, so_far
from app.console.page import ROOT, Looking, Page, go, show
from app.impact.impact import ImpactRequest, added, last_weeks
from app.jobs.records import JobRecord, all_records
from app.jobs.schedule import is_well, periods
from app.routes.bank import get_profile
from app.routes.policy import get_policy
from app.routes.statistics import get_statistics
from retrieval.database.rows import AnyRow
from retrieval.pages import statistics

router = APIRouter(prefix=ROOT, route_class=Page, include_in_schema=False)

LATELY_DAYS = 7
LEAST_REPLAYED = 10
"""Least number of replayed runs for the page to compare the orders of cases."""


@router.get("")
async def overview(request: Request, looking: Looking) -> Response:
    """Returns the overview of an agent; for a user without an agent, the first steps."""
    parts, author, agent = looking.parts, looking.author, looking.agent
    if agent is None:
        return go(f"{ROOT}/installation") if looking.visit.is_operator else show(request, "begin.html", looking)
    weeks = last_weeks(datetime.now(UTC))

    async def runs_and_missing() -> tuple[Sequence[AnyRow], Sequence[AnyRow]]:
        async with parts.database.as_user(author.user_sub, author.authorised_at) as connection:
            runs = (await connection.execute(statistics.runs_by_week(author.user_sub, agent, weeks))).all()
            missing = (await connection.execute(statistics.degraded(author.user_sub, agent, LATELY_DAYS))).all()
        return runs, missing

    async def jobs_of_operator() -> list[JobRecord]:
        if not looking.visit.is_operator:
            return []
        async with parts.database.as_worker() as connection:
            return await all_records(connection)

    (
        numbers,
        policies,
        profile,
        (runs, missing),
        changed,
        jobs,
    ) = await gather(  # in parallel: the database has several cores
        get_statistics(agent, parts, author),
        get_policy(agent, parts, author),
        get_profile(agent, parts, author),
        runs_and_missing(),
        added(parts, ImpactRequest(author.user_sub, author.authorised_at, agent)),
        jobs_of_operator(),
    )
    wanted = periods(parts.settings)
    return show(
        request,
        "overview.html",
        looking,
        numbers=numbers,
        policies=policies,
        explores=profile.explore > 0,
        least=LEAST_FOR_POINT,
        least_replayed=LEAST_REPLAYED,
        curves=curves(weeks, runs),
        changed=changed,
        so_far=so_far(changed.so_far),
        missing=missing,
        days=LATELY_DAYS,
        late=[job.name for job in jobs if job.name in wanted and not is_well(job, wanted[job.name])],
    )
