"""The demo's plot: steps and first-try rate along the stream, both arms."""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from app.demo.report import DemoReport

_STYLES = (("without memory", "#8a8f98", "o"), ("with casebank", "#1663c7", "s"))


def plot(report: DemoReport, path: Path) -> None:
    """Writes the plot to `path`; its suffix chooses the format."""
    figure = Figure(figsize=(10, 4.4), dpi=150)
    axes = figure.subplots(1, 2)
    arms = (report.without, report.with_memory)
    _lines(axes[0], [arm.per_part(lambda record: record.steps) for arm in arms], "steps per task")
    _lines(axes[1], [arm.per_part(lambda r: 100 * r.first_try) for arm in arms], "solved at the first try (%)")
    axes[0].axhline(report.budget, color="#c0392b", linewidth=0.8, linestyle=":")
    axes[0].annotate("step budget", (0.99, report.budget), (0, 3), xycoords=("axes fraction", "data"),
                     textcoords="offset points", ha="right", fontsize=8, color="#c0392b")  # fmt: skip
    axes[0].set_ylim(0, report.budget * 1.12)
    axes[1].set_ylim(-4, 104)
    tasks = len(report.without.records)
    figure.suptitle(
        f"The same {tasks} database tasks, without memory and with casebank (scripted operator)", fontsize=12
    )
    figure.legend(*axes[0].get_legend_handles_labels(), loc="lower center", ncols=2, frameon=False)
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    figure.savefig(path)


def _lines(axes: Axes, values: list[list[float]], label: str) -> None:
    for (name, color, marker), series in zip(_STYLES, values, strict=True):
        axes.plot(range(1, len(series) + 1), series, label=name, color=color, marker=marker, linewidth=1.8)
    axes.set_xlabel("tenth of the task stream")
    axes.set_ylabel(label)
    axes.set_xticks(range(1, len(values[0]) + 1))
    axes.grid(axis="y", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
