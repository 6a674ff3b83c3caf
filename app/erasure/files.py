"""The search of a server's files for marks, byte by byte, on the machine where the files are."""

import mmap
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

FOLDERS = ("base", "global", "pg_wal")
"""Where rows, indexes, statistics and the log are."""


def search(data: Path, marks: Sequence[str]) -> dict[str, dict[str, int]]:
    """Returns how often each mark stands in each file of the data folder and in the server's log beside it.

    The answer has a file, by its path, only if there is a mark in it. What Postgres compressed (texts of more than
    about 2 kB) is not found.
    """
    pattern = re.compile(b"|".join(re.escape(mark.encode()) for mark in sorted(marks, key=len, reverse=True)))
    found: dict[str, dict[str, int]] = {}
    for file in _files(data):
        if counts := _counts(file, pattern):
            found[file.relative_to(data.parent).as_posix()] = counts
    return found


def _files(data: Path) -> Iterator[Path]:
    for folder in FOLDERS:
        yield from sorted(path for path in (data / folder).rglob("*") if path.is_file())
    yield from sorted(data.parent.glob(f"{data.name}.log*"))


def _counts(file: Path, pattern: re.Pattern[bytes]) -> dict[str, int]:
    try:
        with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return dict(Counter(match.group().decode() for match in pattern.finditer(content)))
    except (FileNotFoundError, ValueError):  # gone meanwhile, or empty
        return {}
