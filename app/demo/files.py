"""Files of the demo: its numbers as JSON, and a plot."""

import json
from collections.abc import Mapping
from pathlib import Path

from app.demo.fleet import FleetReport
from app.demo.report import DemoReport


def write_files(report: DemoReport, out_dir: Path) -> dict[str, str]:
    """Writes demo.json and, if matplotlib is installed, demo.png; returns the path of each kind."""
    files = {"json": _write(report.as_dict(), out_dir / "demo.json")}
    try:
        from app.demo.plot import plot  # noqa: PLC0415 (matplotlib is an extra; the demo runs without it)
    except ImportError:
        return files
    files["png"] = str(out_dir / "demo.png")
    plot(report, Path(files["png"]))
    return files


def write_fleet_files(report: FleetReport, budget: int, out_dir: Path) -> dict[str, str]:
    """Writes demo-fleet.json and demo-fleet.png; returns the path of each kind."""
    from app.demo.plot import plot_fleet  # noqa: PLC0415 (the training extra includes matplotlib)

    files = {"json": _write(report.as_dict(), out_dir / "demo-fleet.json"), "png": str(out_dir / "demo-fleet.png")}
    plot_fleet(report, budget, Path(files["png"]))
    return files


def _write(numbers: Mapping[str, object], file: Path) -> str:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(numbers, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return str(file)
