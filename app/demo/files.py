"""Files of the demo: its numbers as JSON, and a plot."""

import json
from pathlib import Path

from app.demo.report import DemoReport


def write_files(report: DemoReport, out_dir: Path) -> dict[str, str]:
    """Writes demo.json and, if matplotlib is installed, demo.png; returns the path of each kind."""
    numbers = out_dir / "demo.json"
    numbers.parent.mkdir(parents=True, exist_ok=True)
    numbers.write_text(json.dumps(report.as_dict(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    files = {"json": str(numbers)}
    try:
        from app.demo.plot import plot  # noqa: PLC0415 (matplotlib is an extra; the demo runs without it)
    except ImportError:
        return files
    files["png"] = str(out_dir / "demo.png")
    plot(report, Path(files["png"]))
    return files
