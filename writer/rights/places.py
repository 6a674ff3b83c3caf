"""Lists the places that may hold a user's words after an erasure, such as backups, and the state of the words there.

The words are gone, remain until some event, or the state is unknown, because casebank cannot look there. This module
queries no server; it concludes from facts that its callers gathered.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Literal

from writer.rights.erase import Receipt

State = Literal["gone", "remains", "unknown"]

ROWS, KEY, NAMES, STATISTICS = "rows", "key", "names in the rows of others", "statistics"
DEAD_ROWS, WAL, REPLICAS, BACKUPS = "dead rows", "write-ahead log", "replicas and archives", "backups"
PROVIDERS, LOGS, MEMORY, DISK = "embedder and language model", "logs", "memory of running processes", "disk"
TOMBSTONE = "tombstone"

_REPEAT = "repeat the scrub; see docs/operating.md"


@dataclass(frozen=True, slots=True)
class Place:
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
        archives: whether the database's log is archived; None: it cannot be seen.
    """

    sealed: str
    providers: tuple[str, ...] = ()
    standbys: int | None = None
    archives: bool | None = None


@dataclass(frozen=True, slots=True)
class Search:
    """Result of a search of the database server's files for marks of an erased user: the name, and pieces of texts.

    Attributes:
        looked_for: number of marks that were searched for, by kind.
        shared: number of marks that rows of other users contain as well; hits of these prove nothing and do not count.
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
        readable: whether this machine can read the server's files.
    """

    at: str
    tables: int
    log: Log
    readable: bool
    search: Search | None = None


def places(receipt: Receipt, around: Surroundings, scrubbed: Scrubbed | None = None) -> list[Place]:
    """Returns every place in which data of the user was or may be, with its state."""
    return [*_in_the_bank(receipt), *_on_the_disk(scrubbed), *_elsewhere(around)]


def _in_the_bank(receipt: Receipt) -> Iterator[Place]:
    left = sum(receipt.residue.values())
    yield _counted(ROWS, left, "every row of the user was deleted", "rows are left", "repeat the purge")
    destroyed = "destroyed" if receipt.keys_destroyed else "there was none"
    yield Place(KEY, "gone", f"the key that opens what was sealed: {destroyed}")
    left = sum(receipt.names_left.values())
    renamed = sum(receipt.renamed.values())
    gone = f"the name of who acted for others became a tombstone in {renamed} rows"
    yield _counted(NAMES, left, gone, "rows still name the user", "repeat the purge")
    yield Place(STATISTICS, "gone", "gathered anew without the user; none are kept of any column that holds words")
    known = "the sha256 of the name and the time stay, so that nothing from before is let in: a guess can be confirmed"
    yield Place(TOMBSTONE, "remains", known, "for good, on purpose")


def _counted(place: str, left: int, gone: str, rest: str, until: str) -> Place:
    return Place(place, "remains", f"{left} {rest}", until) if left else Place(place, "gone", gone)


def _on_the_disk(scrubbed: Scrubbed | None) -> Iterator[Place]:
    if scrubbed is None:
        dead = "what was deleted stands in the data files, readable to whoever can read those"
        yield Place(DEAD_ROWS, "remains", dead, "until vacuum has freed and new rows have overwritten it, or a scrub")
        log = "the log still holds what was written"
        yield Place(WAL, "remains", log, "until its segments were overwritten or removed, or a scrub")
    else:
        yield _scrubbed_rows(scrubbed)
        log_files = [file for file in (scrubbed.search.found if scrubbed.search else ()) if _is_log(file)]
        if scrubbed.log.oldest is None:
            yield Place(WAL, "remains", scrubbed.log.why, "until its segments were overwritten or removed, or a scrub")
        elif log_files:
            yield Place(WAL, "remains", f"words of the user were found in {', '.join(sorted(log_files))}", _REPEAT)
        else:
            yield Place(WAL, "gone", f"nothing before segment {scrubbed.log.oldest} is left on the server")
    disk = "blocks that a file system or an SSD freed are out of reach of any program"
    yield Place(DISK, "unknown", disk, "encrypt the disk")


def _scrubbed_rows(scrubbed: Scrubbed) -> Place:
    rewritten = f"{scrubbed.tables} tables were rewritten at {scrubbed.at}, which leaves no dead row behind"
    search = scrubbed.search
    if not scrubbed.readable:
        unread = f"{rewritten}; the server's files cannot be read from here, so nobody here can know what is in them"
        return Place(DEAD_ROWS, "unknown", unread)
    if search is None:
        return Place(DEAD_ROWS, "gone", f"{rewritten}; the files were not searched for this user")
    looked = ", ".join(f"{count} {kind}" for kind, count in search.looked_for.items())
    searched = f"{rewritten}; data files and log were searched for {looked}"
    if search.shared:
        searched += f" ({search.shared} of them left out, for they stand in rows of others)"
    if files := [file for file in search.found if not _is_log(file)]:
        return Place(DEAD_ROWS, "remains", f"{searched}: found in {', '.join(sorted(files))}", _REPEAT)
    return Place(DEAD_ROWS, "gone", f"{searched}: {'found in the log alone' if search.found else 'not found'}")


def _is_log(file: str) -> bool:
    return "pg_wal" in file.split("/")


def _elsewhere(around: Surroundings) -> Iterator[Place]:
    if around.standbys is None or around.archives is None:
        yield Place(REPLICAS, "unknown", "the login may not see whether there are any")
    elif around.standbys or around.archives:
        there = f"{around.standbys} standbys or slots; the log is{'' if around.archives else ' not'} archived"
        follows = "a standby follows at once, its files as above; an archive when deleted"
        yield Place(REPLICAS, "remains", there, follows)
    else:
        yield Place(REPLICAS, "gone", "the server has no standby, no slot and no archive now")
    kept = (
        f"those made before the erasure hold the user's rows. Sealed in them: {around.sealed}. They hold the user's key"
        " as well, wrapped: with the master key of their time all of it opens"
    )
    yield Place(BACKUPS, "unknown", kept, "delete them, or rotate the master key and destroy the old one")
    if around.providers:
        sent = f"texts were sent to {', '.join(around.providers)}"
        yield Place(PROVIDERS, "unknown", sent, "as your contract with them says")
    else:
        here = "as now set, vectors are computed in the process and no text is sent anywhere"
        yield Place(PROVIDERS, "gone", here)
    logs = "casebank's log names no user and quotes nobody; what proxies and your backend wrote is out of its sight"
    yield Place(LOGS, "unknown", logs, "as you set them to expire")
    memory = "a process that served the user may remember the key, which opens nothing that is left in the bank"
    yield Place(MEMORY, "remains", memory, "until those processes are restarted")
