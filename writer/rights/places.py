"""Lists the places that may hold a user's words after an erasure, such as backups, and the state of the words there.

The words are gone, remain until some event, or the state is unknown, because casebank cannot look there. This module
queries no server; it concludes from facts that its callers gathered.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from retrieval.patterns import read
from writer.rights.erase import Receipt

STATES = ("gone", "unknown", "remains")
"""The states, the best first."""

_TOLD: Mapping[str, dict[str, str]] = read("writer.rights", "places.toml")
ON_THE_DISK = (_TOLD["dead_rows"]["place"], _TOLD["log"]["place"])
"""The places that a scrub cleans."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Facts about the places where an installation keeps and sends the words of users.

    Attributes:
        sealed: description of the fields that are encrypted with the user's key.
        providers: hosts that receive texts to embed or explain; empty: this installation computes all of it itself.
        standbys: number of standby servers and replication slots that get the database's log.
        archives: true if the database's log is archived.
    """

    sealed: str
    providers: tuple[str, ...] = ()
    standbys: int = 0
    archives: bool = False


@dataclass(frozen=True, slots=True)
class MarkSearch:
    """Result of a search of the database server's files for marks of an erased user: the name, and pieces of texts.

    Attributes:
        looked_for: number of marks that were searched for, by kind.
        shared: number of marks that other rows contain as well; hits of these are no proof and do not count.
        found: number of hits of the other marks, by file.
    """

    looked_for: Mapping[str, int]
    shared: int
    found: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Scrubbed:
    """Result of a scrub, which removes deleted rows from the database's files after an erasure.

    Attributes:
        began_at: start of the scrub, by the database's clock.
        tables: number of tables that were rewritten and so contain no deleted row.
        log_from: first segment of the write-ahead log that the server still holds; None: older content is left.
        log_kept_by: reason why older content of the log is left; empty: none is left.
        readable: true if this machine can read the server's files.
        search: result of the search for this user's marks; None: there was no search.
    """

    began_at: datetime
    tables: int
    log_from: str | None
    log_kept_by: str = ""
    readable: bool = False
    search: MarkSearch | None = None

    @property
    def at(self) -> str:
        """Returns the start in ISO 8601, to the second."""
        return self.began_at.isoformat(timespec="seconds")


def places(receipt: Receipt, around: Surroundings, scrubbed: Scrubbed | None = None) -> list[dict[str, str]]:
    """Returns every place in which data of the user was or may be.

    A place has its name as ``place``, its ``state``, a sentence as ``what``, and the event that removes words that
    remain as ``until``.
    """
    left, named, renamed = (sum(each.values()) for each in (receipt.residue, receipt.names_left, receipt.renamed))
    return [
        _told("rows_left", left=left) if left else _told("rows"),
        _told("key", destroyed="destroyed" if receipt.keys_destroyed else "there was none"),
        _told("names_left", left=named) if named else _told("names", renamed=renamed),
        *map(_told, ("statistics", "reasons", "tombstone")),
        *_on_the_disk(scrubbed),
        _told("replicas", standbys=around.standbys, archived="archived" if around.archives else "not archived")
        if around.standbys or around.archives
        else _told("no_replicas"),
        _told("backups", sealed=around.sealed),
        _told("providers", hosts=", ".join(around.providers)) if around.providers else _told("no_providers"),
        *map(_told, ("logs", "memory")),
    ]


def _told(key: str, **found: object) -> dict[str, str]:
    """Returns the place of this key in ``places.toml``, with what was found in its sentence."""
    return {**_TOLD[key], "what": _TOLD[key]["what"].format(**found)}


def _on_the_disk(scrubbed: Scrubbed | None) -> Iterator[dict[str, str]]:
    if scrubbed is None:
        yield _told("dead_rows")
        yield _told("log", why="the log still holds what was written")
    else:
        yield _scrubbed_rows(scrubbed)
        log_files = sorted(file for file in (scrubbed.search.found if scrubbed.search else ()) if _is_log(file))
        if scrubbed.log_from is None:
            yield _told("log", why=scrubbed.log_kept_by)
        elif log_files:
            yield _told("log_found", files=", ".join(log_files))
        else:
            yield _told("log_gone", oldest=scrubbed.log_from)
    yield _told("disk")


def _scrubbed_rows(scrubbed: Scrubbed) -> dict[str, str]:
    rewritten = f"{scrubbed.tables} tables were rewritten at {scrubbed.at}, which leaves no dead row behind"
    search = scrubbed.search
    if not scrubbed.readable:
        return _told("unread", rewritten=rewritten)
    if search is None:
        return _told("unsearched", rewritten=rewritten)
    looked = ", ".join(f"{count} {kind}" for kind, count in search.looked_for.items())
    searched = f"{rewritten}; data files and log were searched for {looked}"
    if search.shared:
        searched += f" ({search.shared} of them left out, for they stand in rows of others or of Postgres)"
    if files := sorted(file for file in search.found if not _is_log(file)):
        return _told("rows_found", searched=searched, files=", ".join(files))
    return _told("not_found", searched=searched, found="found in the log alone" if search.found else "not found")


def _is_log(file: str) -> bool:
    return "pg_wal" in file.split("/")
