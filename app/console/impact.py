"""What runs came to, week by week, with a case shown to them and without: what was seen, and no claim why.

What memory changed, with the interval that says so, is ``app.impact.impact``'s; here it is drawn.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from app.console.charts import Axes, Chart, Point, Series, chart
from app.schemas.impact import RangeOut
from retrieval.database.rows import AnyRow

Z95 = 1.96
CHANGED = "Reward that memory added per decision, so far"
SHOWN, NOT_SHOWN = "a case was shown", "none was shown"
LEAST_FOR_INTERVAL = 2
BESIDE = 0.08
"""Of a week, by which the second line stands to the right of the first, so that both intervals are seen."""


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean, with its 95 % interval where there are enough runs for one."""

    value: float
    low: float | None
    high: float | None
    runs: int


@dataclass(frozen=True, slots=True)
class Week:
    """What the runs of a week came to; None where there was none."""

    starts: datetime
    shown: Mean | None
    not_shown: Mean | None


@dataclass(frozen=True, slots=True)
class Curve:
    """A number of runs by week, apart by whether a case was shown to them."""

    name: str
    unit: str
    weeks: list[Week]

    def chart(self) -> Chart | None:
        """Returns it drawn; None where there is nothing to draw."""
        labels = [(self._along(week), f"{week.starts:%d %b}") for week in self.weeks]
        shown = [_point(self._along(week), week.shown) for week in self.weeks if week.shown]
        other = [_point(self._along(week) + BESIDE, week.not_shown) for week in self.weeks if week.not_shown]
        series = [Series(SHOWN, shown, longest_step=1), Series(NOT_SHOWN, other, longest_step=1)]
        said = f"{self.name} by week, {len(self.weeks)} weeks: {_last(self.weeks)}. The table below has every number."
        axes = Axes(labels, (0.0, 1.0) if self.unit == "reward" else None)
        return chart(f"{self.name} by week", said, series, axes)

    def _along(self, week: Week) -> float:
        """Returns how many weeks it is after the first one."""
        return (week.starts - self.weeks[0].starts) / timedelta(weeks=1)


def so_far(known: Sequence[tuple[datetime, RangeOut]]) -> Chart | None:
    """Returns what memory changed as far as each week's end, with its interval, drawn; None: nothing is known yet."""
    if not known:
        return None
    along = [(starts - known[0][0]) / timedelta(weeks=1) for starts, _ in known]
    points = [Point(at, seen.estimate, seen.low, seen.high) for at, (_, seen) in zip(along, known, strict=True)]
    labels = [(at, f"{starts:%d %b}") for at, (starts, _) in zip(along, known, strict=True)]
    newest = known[-1][1]
    said = f"{CHANGED}: {newest.estimate:+.2f} by now, 95 % from {newest.low:+.2f} to {newest.high:+.2f}."
    return chart(CHANGED, f"{said} The table below has every number.", [Series(CHANGED, points)], Axes(labels))


def curves(weeks: Sequence[datetime], rows: Sequence[AnyRow]) -> list[Curve]:
    """Returns the curves of reward and of steps from rows of ``runs_by_week``, without weeks that had no run."""
    found = {(row.week, row.shown): row for row in rows}
    numbers = sorted({row.week for row in rows})
    both = [(weeks[each - 1], found.get((each, True)), found.get((each, False))) for each in numbers]
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


def _point(along: float, mean: Mean) -> Point:
    return Point(along, mean.value, mean.low, mean.high)


def _last(weeks: Sequence[Week]) -> str:
    newest = weeks[-1]
    shown = "no run" if newest.shown is None else f"{newest.shown.value:.2f}"
    other = "no run" if newest.not_shown is None else f"{newest.not_shown.value:.2f}"
    return f"in the last one {shown} where {SHOWN}, {other} where {NOT_SHOWN}"
