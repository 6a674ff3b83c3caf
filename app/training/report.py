"""Reports of a training: JSON for machines, and a picture of each verdict for people."""

from collections.abc import Sequence
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from policy.verdict import Verdict
from retrieval.ranking.policies import name_of
from writer.training.result import TrainingResult


def as_json(learnt: TrainingResult) -> dict[str, object]:
    """Returns the whole result of the training, as plain JSON values."""
    verdict = learnt.verdict.as_json() if learnt.verdict else None
    return {**asdict(learnt), "verdict": verdict}


def draw(learnt: Sequence[TrainingResult], folder: Path) -> list[Path]:
    """Writes a picture of each learning curve, and of each verdict's uplift and calibration; returns the files.

    Their names begin with the place in the list: versions of different profiles have the same numbers. Without
    matplotlib, which is an extra, there are none.
    """
    files: list[Path] = []
    if find_spec("matplotlib") is None:
        return files
    for place, each in enumerate(learnt):
        if each.learning_curve:
            files.append(_draw_curve(each, folder / f"curve-{place}-{_name(each)}.png"))
        if each.verdict and each.verdict.estimates:
            files.append(_draw(each, each.verdict, folder / f"verdict-{place}-{_name(each)}.png"))
    return files


def _name(learnt: TrainingResult) -> str:
    return "" if learnt.version is None else name_of(learnt.version)


def _draw_curve(learnt: TrainingResult, file: Path) -> Path:
    plt = _pyplot()
    points = learnt.learning_curve
    figure, axes = plt.subplots(figsize=(5, 3.6), layout="constrained")
    axes.plot([point["decisions"] for point in points], [point["log_loss_gain"] for point in points], "o-")
    axes.axhline(0, color="grey", linewidth=0.8)
    axes.set_xlabel("decisions trained on")
    axes.set_ylabel("log loss gained on later ones, nats")
    axes.set_title(f"{_name(learnt)}: {learnt.outcome}")
    figure.savefig(file, dpi=120)
    plt.close(figure)
    return file


def _pyplot() -> ModuleType:
    import matplotlib as mpl  # noqa: PLC0415 - an extra that a server lacks

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415 - as above

    return plt


def _draw(learnt: TrainingResult, verdict: Verdict, file: Path) -> Path:
    plt = _pyplot()
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    names = [name for name in verdict.estimates if " - " in name]
    for place, name in enumerate(names):
        interval = verdict.estimates[name].dr
        left.plot([interval.low, interval.high], [place, place], color="tab:blue")
        left.plot(interval.estimate, place, "o", color="tab:blue")
    left.axvline(0, color="grey", linewidth=0.8)
    left.set_yticks(range(len(names)), names)
    left.set_xlabel(f"reward gained, one-sided {verdict.settings.level:.0%} bounds")
    left.set_title(f"{_name(learnt)}: {verdict.outcome}")
    if verdict.calibration is not None:
        bins = verdict.calibration.bins
        right.plot([0, 1], [0, 1], color="grey", linewidth=0.8)
        right.plot([part.predicted for part in bins], [part.observed for part in bins], "o-", color="tab:orange")
        right.set_title(f"calibration error {verdict.calibration.ece:.3f}")
    right.set_xlabel("promised reward")
    right.set_ylabel("reward")
    figure.savefig(file, dpi=120)
    plt.close(figure)
    return file
