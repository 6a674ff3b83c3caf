"""Where the project lies, the data beside it that some tests need, and where servers of tests keep theirs."""

import os
import shutil
from pathlib import Path

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("CASEBANK_DATA") or ROOT.parent / "shared" / "data")
LEAST_MEMORY_BYTES = 8 << 30


def memory() -> str | None:
    """Returns a folder in memory, where a server waits for no disk; None, the usual place, where there is little."""
    folder = Path("/dev/shm")  # noqa: S108 - a folder of its own is made in it
    if "TMPDIR" in os.environ or not folder.is_dir() or shutil.disk_usage(folder).free < LEAST_MEMORY_BYTES:
        return None
    return str(folder)
