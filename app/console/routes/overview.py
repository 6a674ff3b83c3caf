"""The overview: the effect of memory, the cases by state, the queue, and incomplete answers."""

import math
from asyncio import gather
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from fastapi import APIRouter, Request, Response

from app.console.charts import Axes, Chart, Point, Series, chart
from app.console.page import ROOT, Looking, Page, go, show
from app.impact.report import NOT_SHOWN, SHOWN, ImpactRequest, SoFar, added, last_weeks
from app.jobs.records import JobRecord, all_records
from app.jobs.schedule import is_well, periods
from app.routes.bank import get_profile
from app.routes.policy import get_policy
from app.routes.statistics import get_statistics
from retrieval.database.rows import AnyRow
from retrieval.pages import statistics

Z95 = 1.96
CHANGED = "Reward added by memory per decision, so far"
LEAST_FOR_POINT = 5
"""Least number of runs in a week for the chart to show the week's mean; the table shows every week."""
BESIDE = 0.08
"""Offset of the second line in weeks, so that the intervals of both lines are visible."""


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean, with its 95 % interval if there are enough runs."""

    value: float
    low: float | None
    high: float | None
    runs: int


@dataclass(frozen=True, slots=True)
class Week:
    """Means over the runs of a week, with and without a case; None: no such run."""

    starts: datetime
    shown: Mean | None
    not_shown: Mean | None


@dataclass(frozen=True, slots=True)
class Curve:
    """A weekly mean over runs with a case, and over runs without."""

    name: str
    unit: str
    weeks: list[Week]

    def chart(self) -> Chart | None:
        """Returns the chart of the weeks with enough runs; None if there is no such week."""
        if not self.weeks:
            return None
        labels = [(self._along(week), f"{week.starts:%d %b}") for week in self.weeks]
        shown = [point for week in self.weeks for point in _points(self._along(week), week.shown)]
        other = [point for week in self.weeks for point in _points(self._along(week) + BESIDE, week.not_shown)]
        series = [Series(SHOWN, shown, longest_step=1), Series(NOT_SHOWN, other, longest_step=1)]
        newest = self.weeks[-1]
        with_case, without = (
            "too few runs" if mean is None or mean.runs < LEAST_FOR_POINT else f"{mean.value:.2f}"
            for mean in (newest.shown, newest.not_shown)
        )
        description = (
            f"{self.name} by week, {len(self.weeks)} weeks. Week of {newest.starts:%d %b}: {with_case} {SHOWN},"
            f" {without} {NOT_SHOWN}. The table below has all numbers."
        )
        axes = Axes(labels, (0.0, 1.0) if self.unit == "reward" else None)
        return chart(f"{self.name} by week", description, series, axes)

    def _along(self, week: Week) -> float:
        """Returns the number of weeks since the first one."""
        return (week.starts - self.weeks[0].starts) / timedelta(weeks=1)


def so_far(known: Sequence[SoFar]) -> Chart | None:
    """Returns the chart of the reward added by memory up to the end of each week; None without data."""
    if not known:
        return None
    along = [(each.starts - known[0].starts) / timedelta(weeks=1) for each in known]
    points = [
        Point(at, each.reward.estimate, each.reward.low, each.reward.high)
        for at, each in zip(along, known, strict=True)
    ]
    labels = [(at, f"{each.starts:%d %b}") for at, each in zip(along, known, strict=True)]
    newest = known[-1].reward
    description = f"{CHANGED}: {newest.estimate:+.2f} now, 95 % interval {newest.low:+.2f} to {newest.high:+.2f}."
    return chart(CHANGED, f"{description} The table below has all numbers.", [Series(CHANGED, points)], Axes(labels))


def curves(weeks: Sequence[datetime], rows: Sequence[AnyRow]) -> list[Curve]:
    """Returns the curves of reward and steps from rows of ``runs_by_week``, without weeks that had no run."""
    by_week = {(row.week, row.shown): row for row in rows}
    numbers = sorted({row.week for row in rows})

    def means(name: str, counted: str, highest: float) -> list[Week]:
        def mean(week: int, shown: bool) -> Mean | None:  # noqa: FBT001
            return _mean(by_week.get((week, shown)), name, counted, highest)

        return [Week(weeks[each - 1], mean(each, True), mean(each, False)) for each in numbers]

    rewards, steps = means("reward", "rewarded", 1.0), means("steps", "runs", math.inf)
    return [Curve("Mean reward", "reward", rewards), Curve("Steps per run", "steps", steps)]


def _mean(row: AnyRow | None, name: str, counted: str, highest: float) -> Mean | None:
    """Returns the mean of this name over a week's runs; None without runs, and without an interval for a single run."""
    runs = 0 if row is None else getattr(row, counted)
    if not runs:
        return None
    value, deviation = float(getattr(row, name)), getattr(row, f"{name}_sd")
    if deviation is None:
        return Mean(value, None, None, runs)
    margin = Z95 * float(deviation) / math.sqrt(runs)
    return Mean(value, max(0.0, value - margin), min(highest, value + margin), runs)


def _points(along: float, mean: Mean | None) -> list[Point]:
    """Returns the point of a week; none for a week with few runs."""
    if mean is None or mean.runs < LEAST_FOR_POINT:
        return []
    return [Point(along, mean.value, mean.low, mean.high)]


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

    numbers, policies, profile, (runs, missing), changed, jobs = await gather(  # the database has several cores
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
