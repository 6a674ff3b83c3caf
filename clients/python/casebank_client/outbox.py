"""The outbox: what is retained in the background, by a thread of its own, in order, without holding up the agent."""

import atexit
import contextlib
import json
import logging
import os
import queue
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from casebank_client.errors import CasebankRefused, CasebankUnreachable
from casebank_client.wire import Request

log = logging.getLogger("casebank")

MOST_WAITING = 1_000
"""Runs that wait in memory; one more is given up, and logged."""
TRY_AGAIN_S = 15.0
"""Pause before the outbox on disk is sent again after casebank was unreachable."""
FLUSH_S = 5.0
"""Time that the end of the program waits for unsent runs."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A request that casebank refused, and its reason: a status with the problem, or the name of an error."""

    request: Request
    reason: str


@dataclass(frozen=True, slots=True)
class DiskBuffer:
    """Keeps what is not acknowledged yet in a SQLite file: neither an outage nor the end of the program loses it.

    The file holds runs as they were, before casebank redacted anything; only the account that made it can read it.
    Clients of several users may share the file: each client sends the runs of its own user. A run that an older client
    left in it names no user: no client sends such a run, and the log says how many there are.

    Attributes:
        path: path of the file, one for each process.
        most: runs that it holds; the oldest makes place for a new one.
        owner: digest of the user whose runs alone are read, which a client sets for itself; None: the runs of all.
    """

    path: Path
    most: int = 10_000
    owner: str | None = None

    def save(self, request: Request) -> None:
        """Keeps the request; one with the same key is the same."""
        row = request.headers["Idempotency-Key"], request.path, json.dumps(request.body), self.owner
        with self._open() as file:
            file.execute("INSERT OR IGNORE INTO waiting (key, path, body, owner) VALUES (?, ?, ?, ?)", row)
            given_up = file.execute(
                "DELETE FROM waiting WHERE number <= (SELECT max(number) FROM waiting) - ?", (self.most,)
            ).rowcount
        if given_up:
            log.warning("casebank: the buffer on disk is full; runs given up: %s", given_up)

    def forget(self, request: Request) -> None:
        """Drops a request that was answered."""
        with self._open() as file:
            file.execute("DELETE FROM waiting WHERE key = ?", (request.headers["Idempotency-Key"],))

    def set_aside(self, refused: "Refused") -> None:
        """Moves a request that casebank refused to the refused ones; the oldest makes place for a new one."""
        request = refused.request
        row = request.headers["Idempotency-Key"], request.path, json.dumps(request.body), self.owner, refused.reason
        with self._open() as file:
            file.execute("DELETE FROM waiting WHERE key = ?", row[:1])
            file.execute("INSERT OR REPLACE INTO refused (key, path, body, owner, reason) VALUES (?, ?, ?, ?, ?)", row)
            file.execute("DELETE FROM refused WHERE number <= (SELECT max(number) FROM refused) - ?", (self.most,))

    def take_refused(self, *, keep: bool = True) -> "list[Refused]":
        """Returns the refused requests, the oldest first; unless they are to be kept, they wait again."""
        mine = " FROM refused WHERE ?1 IS NULL OR owner = ?1 ORDER BY number"
        with self._open() as file:
            rows = file.execute("SELECT key, path, body, reason" + mine, (self.owner,)).fetchall()
            if not keep:
                again = "INSERT OR IGNORE INTO waiting (key, path, body, owner) SELECT key, path, body, owner"
                file.execute(again + mine, (self.owner,))
                file.executemany("DELETE FROM refused WHERE key = ?", [row[:1] for row in rows])
        return [
            Refused(Request("POST", path, json.loads(body), {"Idempotency-Key": key}), reason)
            for key, path, body, reason in rows
        ]

    def waiting(self) -> list[Request]:
        """Returns what is kept, the oldest first."""
        mine = "SELECT key, path, body FROM waiting WHERE ?1 IS NULL OR owner = ?1 ORDER BY number"
        with self._open() as file:
            rows = file.execute(mine, (self.owner,)).fetchall()
        return [Request("POST", path, json.loads(body), {"Idempotency-Key": key}) for key, path, body in rows]

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        if not self.path.exists():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(self.path, os.O_CREAT | os.O_WRONLY, 0o600))
        with contextlib.closing(sqlite3.connect(self.path)) as file, file:
            file.execute("BEGIN IMMEDIATE")  # two clients may be the first to open the file of an older one
            for table, more in (("waiting", ""), ("refused", ", reason TEXT")):
                columns = f"number INTEGER PRIMARY KEY, key TEXT UNIQUE, path TEXT, body TEXT{more}, owner TEXT"
                file.execute(f"CREATE TABLE IF NOT EXISTS {table} ({columns})")
                if "owner" not in {name for _, name, *_ in file.execute(f"PRAGMA table_info({table})")}:
                    file.execute(f"ALTER TABLE {table} ADD COLUMN owner TEXT")
                    (left,) = file.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608 - a name of ours
                    if left:
                        log.warning("casebank: runs of an older client name no user and stay %s: %s", table, left)
            yield file


@dataclass(slots=True)
class Outbox:
    """Sends what is put into it, one after the other, until closed.

    Attributes:
        send: sends one request, with all its patience.
        disk: file for requests that are not acknowledged yet; None: they are kept in memory only.
        try_again_s: pause between an outage and the next attempt to send the requests on disk.
    """

    send: Callable[[Request], Any]
    disk: DiskBuffer | None = None
    try_again_s: float = TRY_AGAIN_S
    _waiting: "queue.Queue[Request | None]" = field(default_factory=lambda: queue.Queue(MOST_WAITING))
    _refused: deque[Refused] = field(default_factory=lambda: deque(maxlen=MOST_WAITING))
    _closed: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _starting: threading.Lock = field(default_factory=threading.Lock)

    def put(self, request: Request) -> None:
        """Takes a request to be sent; never waits for the network, and never raises."""
        try:
            if self.disk is not None:
                self.disk.save(request)
            self._start()
            self._waiting.put_nowait(request)
        except queue.Full:
            if self.disk is None:  # or else it is sent from there, later
                log.warning("casebank: too many runs wait to be retained; one is given up")
        except (OSError, sqlite3.Error) as error:
            log.warning("casebank: a run is given up, for the buffer on disk fails: %s", type(error).__name__)

    @property
    def refused(self) -> list[Refused]:
        """Requests that casebank refused, the oldest first; they are kept until they are sent again."""
        return list(self._refused) if self.disk is None else self.disk.take_refused()

    def send_refused(self) -> None:
        """Sends every refused request again: once the token is good again, or the service knows its fields."""
        in_memory = [self._refused.popleft() for _ in range(len(self._refused))]
        for each in in_memory if self.disk is None else self.disk.take_refused(keep=False):
            self.put(each.request)

    def start(self) -> None:
        """Begins to send what an earlier process left on disk, if anything."""
        if self.disk is not None and self.disk.path.exists():
            self._start()

    def close(self, within_s: float = FLUSH_S) -> None:
        """Sends what waits, as far as that is done in time; then what is on disk stays there, and the rest is lost."""
        atexit.unregister(self.close)
        if self._thread is None:
            return
        self._closed.set()
        with contextlib.suppress(queue.Full):
            self._waiting.put_nowait(None)
        self._thread.join(within_s)
        if self._thread.is_alive() and self.disk is None:
            log.warning("casebank: closed before every run was retained: %s waited", self._waiting.qsize() + 1)
        if self._refused and self.disk is None:
            log.error(
                "casebank: refused runs were not stored, and are lost without a buffer on disk: %s", len(self._refused)
            )

    def _start(self) -> None:
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="casebank-outbox", daemon=True)
                self._thread.start()
                atexit.register(self.close)

    def _run(self) -> None:
        due = 0.0
        while True:
            if self.disk is not None and time.monotonic() >= due:
                self._send_what_is_on_disk()
                due = time.monotonic() + self.try_again_s
            with contextlib.suppress(queue.Empty):
                request = self._waiting.get(timeout=None if self.disk is None else self.try_again_s)
                if request is None:
                    return
                self._deliver(request)

    def _send_what_is_on_disk(self) -> None:
        if self.disk is None:
            return
        with contextlib.suppress(OSError, sqlite3.Error):
            for request in self.disk.waiting():
                if self._closed.is_set() or not self._deliver(request):
                    return

    def _deliver(self, request: Request) -> bool:
        """Sends one request, and returns whether casebank answered."""
        try:
            self.send(request)
        except CasebankUnreachable as error:
            if self.disk is None:
                log.warning("casebank: a run is given up: %s", error)
            return False
        except CasebankRefused as refused:
            if refused.is_memory_off:
                log.info("casebank: a run is not stored, for memory is off: %s", refused)
            else:
                log.error("casebank: a run was refused, and is kept in `refused`: %s", refused)  # noqa: TRY400 - no crash
                self._set_aside(Refused(request, str(refused)))
        except Exception as error:  # noqa: BLE001 - no run may end the thread that sends the others
            log.error("casebank: a run cannot be sent, and is kept in `refused`: %s", type(error).__name__)  # noqa: TRY400
            self._set_aside(Refused(request, type(error).__name__))
        if self.disk is not None:
            with contextlib.suppress(OSError, sqlite3.Error):
                self.disk.forget(request)
        return True

    def _set_aside(self, refused: Refused) -> None:
        if self.disk is None:
            self._refused.append(refused)
            return
        with contextlib.suppress(OSError, sqlite3.Error, TypeError):
            self.disk.set_aside(refused)
