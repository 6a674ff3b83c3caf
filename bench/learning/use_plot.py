"""The plot of what use alone does: a panel for each data set, the served order from before the first decision on."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.measure import Measurement

_POINT = re.compile(r"use (?P<what>.+): (?P<kind>after|change by) (?P<decisions>[\d,]+) decisions")
_COLUMNS = 4
_COLOR = "#1663c7"


@dataclass(slots=True)
class Panel:
    """One curve, by decisions: the measured values, and the 95 % intervals of their changes since the first."""

    values: dict[int, float] = field(default_factory=dict)
    changes: dict[int, tuple[float, float]] = field(default_factory=dict)


def panels(rows: Sequence[Measurement]) -> Mapping[str, Panel]:
    """Returns the curves in the rows of part ``use``, by data set; other rows are passed over."""
    found: dict[str, Panel] = defaultdict(Panel)
    for row in rows:
        if (told := _POINT.match(row.name)) is None:
            continue
        panel, decisions = found[told["what"]], int(told["decisions"].replace(",", ""))
        if told["kind"] == "after":
            panel.values[decisions] = row.value
        elif row.interval is not None:
            panel.changes[decisions] = row.interval
    return found


def plot(rows: Sequence[Measurement], path: Path) -> None:
    """Writes the curves to ``path``; its suffix chooses the format."""
    found = panels(rows)
    height = max(1, -(-len(found) // _COLUMNS))
    figure = Figure(figsize=(13, 0.6 + 2.6 * height), dpi=120)
    grid = list(figure.subplots(height, _COLUMNS, squeeze=False).flat)
    for axes, (what, panel) in zip(grid, found.items(), strict=False):
        _draw(axes, what, panel)
    for axes in grid[len(found) :]:
        axes.set_visible(False)
    figure.suptitle("The served order with use, nothing trained; bars: 95 % of the change since the start, paired")
    figure.tight_layout()
    figure.savefig(path)


def _draw(axes: Axes, what: str, panel: Panel) -> None:
    marks = sorted(panel.values)
    start = panel.values[marks[0]]
    axes.axhline(start, color="#8a8f98", linewidth=0.8, linestyle="--")
    axes.plot(marks, [panel.values[mark] for mark in marks], marker="o", color=_COLOR, linewidth=1.6)
    for mark, (low, high) in panel.changes.items():
        axes.vlines(mark, start + low, start + high, color=_COLOR, alpha=0.4, linewidth=3)
    axes.set_title(what, fontsize=10)
    axes.set_xlabel("decisions", fontsize=8)
    axes.set_ylim(start - 0.12, start + 0.12)
    axes.tick_params(labelsize=8)
    axes.grid(axis="y", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
