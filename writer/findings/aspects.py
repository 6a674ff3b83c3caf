"""Aspects of a tool call: the files that it reads or changes, and the queries that it searches or asks.

Aspects are derived from the call alone, not from its output.

Finished steps and planned calls have aspects of the same form, so that the two can be compared.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from retrieval.tables.kinds import FindingKind
from writer.findings.paths import ANYWHERE, FilePlace, place_of
from writer.findings.queries import QueryKey, exact_key

SHELL_FOLDER = "the folder of the shell"
"""Key and mark of an aspect that depends on the current folder of a shell."""
MOST_LINES = 1_000_000_000
MOST_PLACES = 20
"""Maximum number of files and folders of one call; a call with more concerns any file."""

Lines = tuple[int, int]
"""The first and the last line of a range, 1-based and inclusive; the range may exceed the file."""


@dataclass(frozen=True, slots=True)
class Aspect:
    """One thing that a call reads, searches, asks or changes.

    Attributes:
        query: the query, path or command as people see it.
        query_key: the query in the form in which two queries are compared.
        lines: the lines that are read; None for the whole file.
        place: places that the call depends on or changes.
        repeatable: true if the same call has the same output as long as no file changes.
        shows: true if the call's output is that of this aspect, as for a file that is read.
    """

    kind: FindingKind
    query: str
    query_key: QueryKey
    path: str = ""
    lines: Lines | None = None
    place: FilePlace = ANYWHERE
    repeatable: bool = True
    shows: bool = True


def reading(path: str, lines: Lines | None = None) -> Aspect:
    """Returns the aspect of reading a file, or some lines of it."""
    return Aspect("read", path, exact_key(f"read {path} {lines}"), path, lines, place_of(path))


def place_of_all(paths: Sequence[str]) -> FilePlace:
    """Returns the union of the paths' places; ANYWHERE for no path, too many paths, or a path that may be anywhere."""
    places = [place_of(path) for path in paths[:MOST_PLACES]]
    if not places or len(paths) > MOST_PLACES or not all(each.keys for each in places):
        return ANYWHERE
    return reduce(or_, places)


def changing(path: str, *, query: str = "", shows: bool = False) -> Aspect:
    """Returns the aspect of changing a file or a folder; an empty path stands for unknown files."""
    place = place_of(path) if path else ANYWHERE
    return Aspect("write", query or path, exact_key("write"), path, None, place, repeatable=False, shows=shows)


def searching(query: str, query_key: QueryKey, scopes: Sequence[str]) -> Aspect:
    """Returns the aspect of a search in files and folders; without `scopes`, the search may read all files."""
    return Aspect("search", query, query_key, place=place_of_all(scopes))


def entering() -> Aspect:
    """Returns the aspect of changing the shell's folder, after which relative paths have another meaning."""
    place = FilePlace(frozenset({SHELL_FOLDER}))
    return Aspect("write", "", exact_key("cd"), place=place, repeatable=False, shows=False)


def by_hand(aspect: Aspect) -> Aspect:
    """Returns the aspect under which a finding written by hand is stored: that of a call that changes no file."""
    if aspect.kind != "write" and aspect.repeatable:
        return aspect
    return Aspect("other", aspect.query, exact_key(f"by hand {aspect.query}"))


def anything_else(query: str, *, repeatable: bool) -> Aspect:
    """Returns the aspect of a call of another kind that changes no file."""
    return Aspect("other", query, exact_key(query), repeatable=repeatable)
