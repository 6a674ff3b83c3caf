"""Paths of files as different tools write them, and whether two may be the same place.

One tool names a file from the root of the disk, another from the folder it happens to be in, which nobody told us. So
two paths may be one place, or one of them inside the other, wherever the end of one fits the beginning of the other.
"""

import posixpath
import re
from dataclasses import dataclass

from writer.errors import PathTooLong

LONGEST_PATH = 4_096
"""Characters, as of Linux; what is longer names no file."""
DEEPEST = 16
"""Folders of a path that are told apart; of a deeper one it is not known where it is."""
_SPREADS = re.compile(r"[*?\[\]{}$`~\\'\"]")
"""Signs by which a shell makes another path, or several, of one, and quotes within."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a path may lead, as texts to be compared: two places touch if keys of one are marks of the other.

    Without keys it may be anywhere.
    """

    keys: frozenset[str] = frozenset()
    marks: frozenset[str] = frozenset()

    def __or__(self, other: "Place") -> "Place":
        """Returns where either is."""
        return Place(self.keys | other.keys, self.marks | other.marks)


ANYWHERE = Place()


def tidy(path: str, folder: str = "") -> str:
    """Returns the path in its shortest form, from that folder on; an empty one stands for the folder of the run.

    Raises:
        PathTooLong: it is no path.
    """
    if len(path) > LONGEST_PATH:
        raise PathTooLong(f"a path of {len(path):,} characters: {LONGEST_PATH:,} are the most")
    plain = path.strip().removeprefix("file://").replace("\\", "/")
    found = posixpath.normpath(posixpath.join(folder, plain)) if plain or folder else ""
    return "" if found == "." else found.replace("//", "/")


def is_plain(path: str) -> bool:
    """Returns whether a path in a command line names one place, by its own words."""
    return not _SPREADS.search(path) and not path.startswith("..")


def place_of(path: str) -> Place:
    """Returns where a tidy path may lead."""
    parts = path.strip("/").split("/")
    if not path.strip("/") or path.startswith("..") or len(parts) > DEEPEST:
        return ANYWHERE
    count = len(parts)
    ends = {"/".join(parts[start:]) for start in range(count)}
    beginnings = {"/".join(parts[:end]) for end in range(1, count + 1)}
    pieces = {"/".join(parts[start:end]) for start in range(count) for end in range(start + 1, count + 1)}
    if path.startswith("/"):  # the root is nowhere inside another path
        ends, beginnings = ends | {path}, {f"/{each}" for each in beginnings}
        keys = {f"begins {each}" for each in ends}
    else:
        keys = {f"begins {each}" for each in ends} | {f"has {path}"}
    marks = {f"begins {each}" for each in beginnings} | {f"has {each}" for each in pieces}
    return Place(frozenset(keys), frozenset(marks))
