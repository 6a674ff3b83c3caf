"""Where the project lies, and the data beside it that some tests need."""

import os
from pathlib import Path

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("CASEBANK_DATA") or ROOT.parent / "shared" / "data")
