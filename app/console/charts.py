"""Charts as numbers for an SVG template: paths of the lines, and labels of the axes."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

MINUS = "\u2212"
WIDTH, HEIGHT = 640, 240
LEFT, RIGHT, TOP, BOTTOM = 48, 612, 16, 200
"""Edges of the part of the chart that has the lines."""
MOST_LABELS = 8
"""Number of labels that fit beside each other below the chart."""


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a line: position along the axis, value, and the bounds of its interval if known."""

    along: float
    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """A line with its name.

    Attributes:
        longest_step: longest gap between two points that the line bridges; None: any gap.
    """

    name: str
    points: Sequence[Point]
    longest_step: float | None = None


@dataclass(frozen=True, slots=True)
class Drawn:
    """A line as drawn: its path, its dots, and the interval of each dot (``bars``)."""

    name: str
    path: str
    dots: list[tuple[float, float]]
    bars: list[tuple[float, float, float]]


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart ready to be drawn.

    Attributes:
        across: positions and labels along the horizontal axis.
        up: positions and labels along the vertical axis.
        ruled: path of the diagonal; empty: no diagonal.
    """

    title: str
    description: str
    drawn: list[Drawn]
    across: list[tuple[float, str]]
    up: list[tuple[float, str]]
    ruled: str


@dataclass(frozen=True, slots=True)
class Axes:
    """Labels and ranges of the axes.

    Attributes:
        labels: position and text of each label of the horizontal axis.
        up: lowest and highest value of the vertical axis; None: the range of the points.
        diagonal: true: draw the line of equal values.
    """

    labels: Sequence[tuple[float, str]]
    up: tuple[float, float] | None = None
    diagonal: bool = False


def chart(title: str, description: str, series: Sequence[Series], axes: Axes) -> Chart | None:
    """Returns the chart of at most two lines; None without points."""
    points = [point for line in series for point in line.points]
    if not points:
        return None
    if axes.up is None:
        values = [each for point in points for each in (point.value, point.low, point.high) if each is not None]
        low, high = min(0.0, *values), max(values)
        high = high if high > low else low + 1
    else:
        low, high = axes.up
    first, last = min(at for at, _ in axes.labels), max(at for at, _ in axes.labels)
    x, y = _scale(first, last, LEFT, RIGHT), _scale(low, high, BOTTOM, TOP)
    ruled = f"M{x(low)} {y(low)}L{x(high)} {y(high)}" if axes.diagonal else ""
    return Chart(
        title,
        description,
        [_drawn(line, x, y) for line in series],
        [(x(at), label) for at, label in axes.labels[:: math.ceil(len(axes.labels) / MOST_LABELS)]],
        [(y(value), f"{value:.2f}".rstrip("0").rstrip(".").replace("-", MINUS)) for value in _ticks(low, high)],
        ruled,
    )


def _scale(low: float, high: float, begin: float, end: float) -> Callable[[float], float]:
    """Returns the function that maps values from low to high to positions from begin to end."""
    span = high - low
    return lambda value: round(begin + ((value - low) / span if span else 0.5) * (end - begin), 1)


def _drawn(line: Series, x: Callable[[float], float], y: Callable[[float], float]) -> Drawn:
    path, before = "", None
    for point in line.points:
        far = before is None or (line.longest_step is not None and point.along - before > line.longest_step)
        path += f"{'M' if far else 'L'}{x(point.along)} {y(point.value)}"
        before = point.along
    between = [
        (x(point.along), y(point.low), y(point.high))
        for point in line.points
        if point.low is not None and point.high is not None
    ]
    return Drawn(line.name, path, [(x(point.along), y(point.value)) for point in line.points], between)


def _ticks(low: float, high: float) -> list[float]:
    """Returns four to seven round values from low to high."""
    rough = (high - low) / 5
    unit = 10 ** math.floor(math.log10(rough))
    step = next(size * unit for size in (1, 2, 5, 10) if size * unit >= rough)
    first = math.ceil(low / step - 1e-9)
    return [number * step for number in range(first, math.floor(high / step + 1e-9) + 1)]
