"""Searches the files of a Postgres server for texts of an erased user, byte by byte, on the server's machine."""

import mmap
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

FOLDERS = ("base", "global", "pg_wal")
"""Folders of a Postgres data directory with rows, indexes, statistics and the write-ahead log."""


def search(data: Path, marks: Sequence[str]) -> dict[str, dict[str, int]]:
    """Returns how often each mark, a text, stands in each file of the data folder and of the server's log.

    The result has a file, by its path, only if it holds a mark. Text that Postgres compressed (of more than about
    2 kB) is not found.
    """
    pattern = re.compile(b"|".join(re.escape(mark.encode()) for mark in sorted(marks, key=len, reverse=True)))
    files = [path for folder in FOLDERS for path in sorted((data / folder).rglob("*")) if path.is_file()]
    files += sorted(data.parent.glob(f"{data.name}.log*"))
    hits: dict[str, dict[str, int]] = {}
    for file in files:
        with (
            suppress(FileNotFoundError, ValueError),  # gone meanwhile, or empty
            file.open("rb") as opened,
            mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content,
        ):
            if counts := Counter(match.group().decode() for match in pattern.finditer(content)):
                hits[file.relative_to(data.parent).as_posix()] = dict(counts)
    return hits
