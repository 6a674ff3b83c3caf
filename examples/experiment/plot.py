"""The experiment's picture: the arms, the sweep over K, the transfer matrix, and the balance of tokens."""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from examples.experiment.arm_summary import summary
from examples.experiment.report import Report

GREY, BLUE, RED = "#8a8f98", "#1663c7", "#c0392b"


def plot(report: Report, path: Path) -> None:
    """Writes the picture to `path`; its suffix chooses the format."""
    figure = Figure(figsize=(11, 8), dpi=130, layout="constrained")
    arms, sweep, matrix, balance = figure.subplots(2, 2).flat
    _arms(arms, report)
    _sweep(sweep, report)
    figure.colorbar(_matrix(matrix, report), ax=matrix, label="points of success won")
    _balance(balance, report)
    figure.suptitle(f"{report.adapter.name}: {len(report.tested)} test tasks with and without memory (scripted agent)")
    figure.savefig(path)


def _arms(axes: Axes, report: Report) -> None:
    arms = {
        "without": [before for before, _ in report.tested],
        f"K = {report.size.k}": [after for _, after in report.tested],
        "wrong family": [after for _, after in report.wrong_family],
    }
    summaries = [summary(episodes) for episodes in arms.values()]
    axes.bar(list(arms), [100 * (each.success or 0) for each in summaries], color=[GREY, BLUE, RED], width=0.5)
    for place, each in enumerate(summaries):
        axes.annotate(f"{each.steps or 0:.1f} steps", (place, 3), ha="center", fontsize=9, color="white")
    axes.set_ylim(0, 100)
    axes.set_ylabel("success (%)")
    axes.spines[["top", "right"]].set_visible(False)


def _sweep(axes: Axes, report: Report) -> None:
    summaries = {str(k): summary(episodes) for k, episodes in report.sweep.items()}
    axes.plot(list(summaries), [each.steps or 0 for each in summaries.values()], "o-", color=BLUE)
    axes.set_xlabel("K")
    axes.set_ylabel("steps a task", color=BLUE)
    axes.set_ylim(bottom=0)
    tokens = axes.twinx()
    tokens.plot(list(summaries), [each.tokens_added or 0 for each in summaries.values()], "s:", color=GREY)
    tokens.set_ylabel("tokens added a task", color=GREY)
    tokens.set_ylim(bottom=0)


def _matrix(axes: Axes, report: Report) -> AxesImage:
    families = list(report.matrix)
    points = [[report.cell(bank, family)["success_points"] or 0 for family in families] for bank in families]
    image = axes.imshow(points, cmap="RdBu", vmin=-100, vmax=100)
    axes.set_xticks(range(len(families)), families, rotation=40, ha="right", fontsize=7)
    axes.set_yticks(range(len(families)), families, fontsize=7)
    axes.set_xlabel("task of")
    axes.set_ylabel("bank of")
    return image


def _balance(axes: Axes, report: Report) -> None:
    axes.plot(range(1, len(report.balance) + 1), report.balance, color=BLUE)
    axes.axhline(0, color=GREY, linewidth=0.8)
    axes.set_xlabel("tasks of practice, from an empty bank on")
    axes.set_ylabel("tokens saved less added")
    axes.spines[["top", "right"]].set_visible(False)
