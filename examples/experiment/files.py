"""The files of the experiment: its numbers as JSON, and a picture."""

import json
from pathlib import Path

from examples.experiment.report import Report


def write_files(report: Report, out_dir: Path) -> dict[str, Path]:
    """Writes the numbers as JSON and, where matplotlib is installed, a picture; returns kind → path."""
    out_dir.mkdir(parents=True, exist_ok=True)
    files = {"json": out_dir / f"experiment-{report.adapter.name}.json"}
    text = json.dumps(report.as_dict(), indent=1, ensure_ascii=False, allow_nan=False)
    files["json"].write_text(text + "\n", encoding="utf-8")
    try:
        from examples.experiment.plot import plot  # noqa: PLC0415 (matplotlib is an extra; the experiment runs without it)
    except ImportError:
        return files
    files["png"] = files["json"].with_suffix(".png")
    plot(report, files["png"])
    return files
