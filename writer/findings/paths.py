"""Paths as different tools write them, and the comparison of two paths that may be the same place.

One tool names a file from the root of the disk, another from its current folder, which is unknown. So two paths may be
the same place, or one inside the other, wherever the end of one matches the beginning of the other.
"""

import posixpath
import re
from dataclasses import dataclass

from writer.errors import PathTooLong

LONGEST_PATH = 4_096
"""Maximum characters of a path, as in Linux."""
DEEPEST = 16
"""Maximum depth of a path that is compared; a deeper path counts as one that may be anywhere."""
_SPREADS = re.compile(r"[*?\[\]{}$`~\\'\"]")
"""Characters that a shell expands to other paths, and quotes."""


@dataclass(frozen=True, slots=True)
class FilePlace:
    """The files or folders that a path may name, in a form that can be compared.

    Two places may overlap if a key of one is a mark of the other. A place without keys may be anywhere.
    """

    keys: frozenset[str] = frozenset()
    marks: frozenset[str] = frozenset()

    def __or__(self, other: "FilePlace") -> "FilePlace":
        """Returns the union of both places."""
        return FilePlace(self.keys | other.keys, self.marks | other.marks)


ANYWHERE = FilePlace()


def tidy(path: str, folder: str = "") -> str:
    """Returns a path, joined to its folder, in the shortest form; an empty result is the folder in which the run works.

    Raises:
        PathTooLong: the path has more than LONGEST_PATH characters.
    """
    if len(path) > LONGEST_PATH:
        raise PathTooLong(f"a path of {len(path):,} characters: {LONGEST_PATH:,} are the most")
    plain = path.strip().removeprefix("file://").replace("\\", "/")
    normal = posixpath.normpath(posixpath.join(folder, plain)) if plain or folder else ""
    return "" if normal == "." else normal.replace("//", "/")


def is_plain(path: str) -> bool:
    """Returns whether a shell would leave a path in a command line as it is, without expanding it."""
    return not _SPREADS.search(path) and not path.startswith("..")


def place_of(path: str) -> FilePlace:
    """Returns the place of a tidy path; ANYWHERE if it is empty, too deep, or begins with ".."."""
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
    return FilePlace(frozenset(keys), frozenset(marks))
