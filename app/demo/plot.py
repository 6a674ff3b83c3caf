"""The demo's plot: steps, success and first tries along the stream, with intervals and the points of each house."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from app.demo.arms import FIRST_TRY, STEPS, SUCCESS, Arm, TaskRecord, mean, pooled
from app.demo.report import DemoReport
from policy.evaluate import Resampling, resampled

_STYLES = {
    "no memory": ("#8a8f98", "o"),
    "keyword memory": ("#c77516", "^"),
    "keyword memory at failures": ("#9b3fb5", "v"),
    "casebank": ("#1663c7", "s"),
}
"""Colour and marker of each arm."""
_RESAMPLES = 1000


def plot(report: DemoReport, folder: Path) -> Path:
    """Writes the plot of the four arms, and returns the file."""
    where = f"{len(report.streams)} houses" if len(report.streams) > 1 else "one house"
    houses = [stream.arms for stream in report.streams]
    figure = Figure(figsize=(13, 4.4), dpi=150)
    axes = figure.subplots(1, 3)
    _lines(axes[0], houses, STEPS, "steps per task")
    _lines(axes[1], houses, lambda record: 100 * SUCCESS(record), "solved (%)")
    _lines(axes[2], houses, lambda record: 100 * FIRST_TRY(record), "solved at the first try (%)")
    axes[0].axhline(report.budget, color="#c0392b", linewidth=0.8, linestyle=":")
    axes[0].annotate("step budget", (0.99, report.budget), (0, 3), xycoords=("axes fraction", "data"),
                     textcoords="offset points", ha="right", fontsize=8, color="#c0392b")  # fmt: skip
    axes[0].set_ylim(0, report.budget * 1.12)
    for each in axes[1:]:
        each.set_ylim(-4, 104)
    tasks = sum(len(arms[0].records) for arms in houses)
    title = f"The same {tasks} database tasks of {where} in {len(houses[0])} arms (scripted operator)"
    figure.suptitle(f"{title}; bands: 95 %; dashed: the rules of the house change", fontsize=11)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="lower center", ncols=len(houses[0]), frameon=False)
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    file = folder / "demo.png"
    figure.savefig(file)
    return file


def _lines(axes: Axes, houses: Sequence[Sequence[Arm]], value: Callable[[TaskRecord], float], label: str) -> None:
    for arms in zip(*houses, strict=True):
        name = arms[0].name
        color, marker = _STYLES[name]
        parts = pooled(arms).parts()
        tenths = np.arange(1, len(parts) + 1)
        # the 95 % interval of each tenth's mean, from resampled tasks
        columns = (np.array([[value(record)] for record in part], dtype=np.float64) for part in parts)
        draws = [resampled(column, Resampling(resamples=_RESAMPLES)) / len(column) for column in columns]
        low, high = np.quantile(draws, (0.025, 0.975), axis=(1, 2))
        axes.fill_between(tenths, low, high, color=color, alpha=0.13, linewidth=0)
        axes.plot(tenths, [mean(part, value) for part in parts], label=name, color=color, marker=marker, linewidth=1.8)
        for arm in arms if len(arms) > 1 else ():
            means = [mean(part, value) for part in arm.parts()]
            axes.plot(tenths, means, ".", color=color, markersize=3, alpha=0.5, zorder=1)
    axes.axvline(len(tenths) / 2 + 0.5, color="#8a8f98", linewidth=0.8, linestyle="--")
    axes.set_xlabel("tenth of the stream")
    axes.set_ylabel(label)
    axes.set_xticks(tenths)
    axes.grid(axis="y", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
