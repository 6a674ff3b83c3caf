"""What a call is about, whatever it answered: the same for a step that was taken and for a question."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from retrieval.tables.kinds import FindingKind
from writer.findings.paths import ANYWHERE, Place, place_of
from writer.findings.queries import Asked, exactly

SHELL_FOLDER = "the folder of the shell"
"""Key and mark of what depends on the folder that a shell is in."""
MOST_LINES = 1_000_000_000
MOST_PLACES = 20
"""Files and folders of one call that are told apart."""

Lines = tuple[int, int]
"""The first and the last line of a part of a file, both 1-based and in it; one may not be there."""


@dataclass(frozen=True, slots=True)
class Aspect:
    """One thing that a call reads, searches, asks or changes.

    Attributes:
        query: as it is shown.
        asked: as it is compared.
        path: of the file that is read; of what is changed, empty where it may be anything.
        lines: of the file; None: all of it.
        place: where what it depends on may be, or what it changes.
        repeatable: whether the same call finds the same, as long as nothing is changed.
        shows: whether what the call answers is about this.
    """

    kind: FindingKind
    query: str
    asked: Asked
    path: str = ""
    lines: Lines | None = None
    place: Place = ANYWHERE
    repeatable: bool = True
    shows: bool = True


def reading(path: str, lines: Lines | None = None) -> Aspect:
    """Returns the reading of a file."""
    return Aspect("read", path, exactly(f"read {path} {lines}"), path, lines, place_of(path))


def place_of_all(paths: Sequence[str]) -> Place:
    """Returns where those paths may lead, taken together; of none, of many, or of one that says nothing: anywhere."""
    places = [place_of(path) for path in paths[:MOST_PLACES]]
    if not places or len(paths) > MOST_PLACES or not all(each.keys for each in places):
        return ANYWHERE
    return reduce(or_, places)


def changing(path: str, *, query: str = "", shows: bool = False) -> Aspect:
    """Returns the changing of a file or a folder; of whatever there is, where the path is empty."""
    place = place_of(path) if path else ANYWHERE
    return Aspect("write", query or path, exactly("write"), path, None, place, repeatable=False, shows=shows)


def searching(query: str, asked: Asked, scopes: Sequence[str]) -> Aspect:
    """Returns a search within those files and folders; in all there is, where none is named."""
    return Aspect("search", query, asked, place=place_of_all(scopes))


def entering() -> Aspect:
    """Returns the changing of the shell's folder: what its paths mean is not known from then on."""
    place = Place(frozenset({SHELL_FOLDER}))
    return Aspect("write", "", exactly("cd"), place=place, repeatable=False, shows=False)


def anything_else(query: str, *, repeatable: bool) -> Aspect:
    """Returns a call that changes nothing, and is none of the others."""
    return Aspect("other", query, exactly(query), repeatable=repeatable)
