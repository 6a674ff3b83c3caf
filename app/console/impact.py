"""Charts of weekly results of runs with and without cases, and of the reward added by memory.

The numbers of the second chart and their intervals come from ``app.impact.impact``.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from app.console.charts import Axes, Chart, Point, Series, chart
from app.impact.compared import NOT_SHOWN, SHOWN
from app.impact.impact import SoFar
from retrieval.database.rows import AnyRow

Z95 = 1.96
CHANGED = "Reward added by memory per decision, so far"
LEAST_FOR_INTERVAL = 2
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
            f"{self.name} by week, {len(self.weeks)} weeks. Last week: {with_case} {SHOWN}, {without} {NOT_SHOWN}."
            " The table below has all numbers."
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
    both = [(weeks[each - 1], by_week.get((each, True)), by_week.get((each, False))) for each in numbers]
    reward = [Week(week, _reward(shown), _reward(other)) for week, shown, other in both]
    steps = [Week(week, _steps(shown), _steps(other)) for week, shown, other in both]
    return [Curve("Mean reward", "reward", reward), Curve("Steps per run", "steps", steps)]


def _reward(row: AnyRow | None) -> Mean | None:
    return None if row is None or not row.rewarded else _mean(row.reward, row.reward_sd, row.rewarded, (0.0, 1.0))


def _steps(row: AnyRow | None) -> Mean | None:
    return None if row is None else _mean(row.steps, row.steps_sd, row.runs, (0.0, math.inf))


def _mean(value: float, deviation: float | None, runs: int, bounds: tuple[float, float]) -> Mean:
    if deviation is None or runs < LEAST_FOR_INTERVAL:
        return Mean(float(value), None, None, runs)
    margin = Z95 * float(deviation) / math.sqrt(runs)
    return Mean(float(value), max(bounds[0], float(value) - margin), min(bounds[1], float(value) + margin), runs)


def _points(along: float, mean: Mean | None) -> list[Point]:
    """Returns the point of a week; none for a week with few runs."""
    if mean is None or mean.runs < LEAST_FOR_POINT:
        return []
    return [Point(along, mean.value, mean.low, mean.high)]
