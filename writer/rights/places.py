"""Lists the places that may hold a user's words after an erasure, such as backups, and the state of the words there.

The words are gone, remain until some event, or the state is unknown, because casebank cannot look there. This module
queries no server; it concludes from facts that its callers gathered.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from retrieval.patterns import read
from writer.rights.erase import Receipt

State = Literal["gone", "unknown", "remains"]
STATES: tuple[State, ...] = get_args(State)
"""The states, the best first."""

_TOLD = read("writer.rights", "places.toml")
ON_THE_DISK: tuple[str, ...] = (_TOLD["dead_rows"]["place"], _TOLD["log"]["place"])
"""The places that a scrub cleans."""


@dataclass(frozen=True, slots=True)
class StoragePlace:
    """A place, such as the backups, and the state of the erased user's words there.

    Attributes:
        what: the state of the words, in a sentence or two.
        until: the event that removes the remaining words; empty: no words remain.
    """

    place: str
    state: State
    what: str
    until: str = ""

    def as_dict(self) -> dict[str, str]:
        """Returns the place as JSON values."""
        return {name: value for name, value in asdict(self).items() if value}


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Facts about the places where an installation keeps and sends the words of users.

    Attributes:
        sealed: description of the fields that are encrypted with the user's key.
        providers: hosts that receive texts to embed or explain; empty: this installation computes all of it itself.
        standbys: number of standby servers and replication slots that get the database's log; None: it cannot be seen.
        archives: true if the database's log is archived; None: it cannot be seen.
    """

    sealed: str
    providers: tuple[str, ...] = ()
    standbys: int | None = None
    archives: bool | None = None


@dataclass(frozen=True, slots=True)
class MarkSearch:
    """Result of a search of the database server's files for marks of an erased user: the name, and pieces of texts.

    Attributes:
        looked_for: number of marks that were searched for, by kind.
        shared: number of marks that rows of other users contain as well; hits of these are no proof and do not count.
        found: number of hits of the other marks, by file.
    """

    looked_for: Mapping[str, int]
    shared: int
    found: Mapping[str, int]

    def as_dict(self) -> dict[str, object]:
        """Returns the search as JSON values."""
        return {"looked_for": dict(self.looked_for), "shared": self.shared, "found": dict(self.found)}


@dataclass(frozen=True, slots=True)
class Log:
    """State of the database's write-ahead log after a scrub.

    Attributes:
        oldest: first segment of the log that the server still holds; None: content from before the scrub is left.
        why: reason why older content is left; empty: none is left.
    """

    oldest: str | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Scrubbed:
    """Result of a scrub, which removes deleted rows from the database's files after an erasure.

    Attributes:
        at: start of the scrub, ISO 8601.
        tables: number of tables that were rewritten and so contain no deleted row.
        search: result of the search for this user's marks; None: there was no search.
        readable: true if this machine can read the server's files.
    """

    at: str
    tables: int
    log: Log
    readable: bool
    search: MarkSearch | None = None


def places(receipt: Receipt, around: Surroundings, scrubbed: Scrubbed | None = None) -> list[StoragePlace]:
    """Returns every place in which data of the user was or may be, with its state."""
    return [*_in_the_bank(receipt), *_on_the_disk(scrubbed), *_elsewhere(around)]


def _told(key: str, **found: object) -> StoragePlace:
    """Returns the place of this key in ``places.toml``, with what was found in its sentence."""
    told: dict[str, Any] = _TOLD[key]
    return StoragePlace(**{**told, "what": told["what"].format(**found)})


def _in_the_bank(receipt: Receipt) -> Iterator[StoragePlace]:
    left, named = sum(receipt.residue.values()), sum(receipt.names_left.values())
    yield _told("rows_left", left=left) if left else _told("rows")
    yield _told("key", destroyed="destroyed" if receipt.keys_destroyed else "there was none")
    renamed = sum(receipt.renamed.values())
    yield _told("names_left", left=named) if named else _told("names", renamed=renamed)
    yield _told("statistics")
    yield _told("reasons")
    yield _told("tombstone")


def _on_the_disk(scrubbed: Scrubbed | None) -> Iterator[StoragePlace]:
    if scrubbed is None:
        yield _told("dead_rows")
        yield _told("log", why="the log still holds what was written")
    else:
        yield _scrubbed_rows(scrubbed)
        log_files = sorted(file for file in (scrubbed.search.found if scrubbed.search else ()) if _is_log(file))
        if scrubbed.log.oldest is None:
            yield _told("log", why=scrubbed.log.why)
        elif log_files:
            yield _told("log_found", files=", ".join(log_files))
        else:
            yield _told("log_gone", oldest=scrubbed.log.oldest)
    yield _told("disk")


def _scrubbed_rows(scrubbed: Scrubbed) -> StoragePlace:
    rewritten = f"{scrubbed.tables} tables were rewritten at {scrubbed.at}, which leaves no dead row behind"
    search = scrubbed.search
    if not scrubbed.readable:
        return _told("unread", rewritten=rewritten)
    if search is None:
        return _told("unsearched", rewritten=rewritten)
    looked = ", ".join(f"{count} {kind}" for kind, count in search.looked_for.items())
    searched = f"{rewritten}; data files and log were searched for {looked}"
    if search.shared:
        searched += f" ({search.shared} of them left out, for they stand in rows of others)"
    if files := sorted(file for file in search.found if not _is_log(file)):
        return _told("rows_found", searched=searched, files=", ".join(files))
    return _told("not_found", searched=searched, found="found in the log alone" if search.found else "not found")


def _is_log(file: str) -> bool:
    return "pg_wal" in file.split("/")


def _elsewhere(around: Surroundings) -> Iterator[StoragePlace]:
    if around.standbys is None or around.archives is None:
        yield _told("replicas_unseen")
    elif around.standbys or around.archives:
        yield _told("replicas", standbys=around.standbys, archived="archived" if around.archives else "not archived")
    else:
        yield _told("no_replicas")
    yield _told("backups", sealed=around.sealed)
    yield _told("providers", hosts=", ".join(around.providers)) if around.providers else _told("no_providers")
    yield from map(_told, ("logs", "memory"))
