"""The outbox: what is retained in the background, by a thread of its own, without holding up the agent."""

import atexit
import contextlib
import json
import logging
import os
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from casebank_client.errors import CasebankRefused, CasebankUnreachable
from casebank_client.wire import Request

log = logging.getLogger("casebank")

MOST_WAITING = 1_000
"""Runs that wait in memory; one more is sent from the disk later, or else given up, and logged."""
TRY_AGAIN_S = 15.0
"""Pause after a run that casebank did not answer."""
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

    A request that casebank does not answer goes behind the others, and the next one is sent after a pause.

    Attributes:
        send: sends one request, with all its patience.
        disk: file for requests that are not acknowledged yet; None: they are kept in memory only.
        try_again_s: pause after a request that casebank did not answer.
    """

    send: Callable[[Request], Any]
    disk: DiskBuffer | None = None
    try_again_s: float = TRY_AGAIN_S
    _waiting: deque[Request] = field(default_factory=deque)
    _refused: deque[Refused] = field(default_factory=lambda: deque(maxlen=MOST_WAITING))
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _thread: threading.Thread | None = None
    _left_on_disk: bool = False
    _closing: bool = False
    _closed: bool = False
    _process: int = field(default_factory=os.getpid)

    def put(self, request: Request) -> None:
        """Takes a request to be sent; never waits for the network."""
        try:
            if self.disk is not None:
                self.disk.save(request)
        except (OSError, sqlite3.Error) as error:
            log.warning("casebank: a run is given up, for the buffer on disk fails: %s", type(error).__name__)
            return
        with self._changed:
            if not self._closing and len(self._waiting) < MOST_WAITING:
                self._start()
                self._waiting.append(request)
                self._changed.notify()
                return
            self._left_on_disk = self.disk is not None
        if self.disk is None:
            why = "the client is closed" if self._closing else "too many runs wait to be retained"
            log.warning("casebank: a run is given up, for %s", why)

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
            with self._changed:
                self._left_on_disk = True
                self._start()

    def close(self, within_s: float = FLUSH_S) -> None:
        """Sends what waits once more, as far as that is done in time; what is on disk stays there, the rest is lost."""
        atexit.unregister(self.close)
        if self._process != os.getpid():  # the end of a fork, whose parent sends this
            return
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._thread is None or self._closed:
            return
        self._thread.join(within_s)
        self._closed = True
        if self._waiting and self.disk is None:
            log.warning("casebank: closed before every run was retained; runs given up: %s", len(self._waiting))
        if self._refused and self.disk is None:
            log.error(
                "casebank: refused runs were not stored, and are lost without a buffer on disk: %s", len(self._refused)
            )

    def _start(self) -> None:
        if self._thread is None:
            thread = threading.Thread(target=self._run, name="casebank-outbox", daemon=True)
            thread.start()
            self._thread = thread
            atexit.register(self.close)

    def _run(self) -> None:
        while (request := self._next()) is not None:
            last = self._closing
            answered = self._deliver(request, last=last)
            with self._changed:
                self._waiting.popleft()
                if not answered and not last:
                    self._waiting.append(request)
                    self._changed.wait_for(lambda: self._closing, self.try_again_s)

    def _next(self) -> Request | None:
        """Returns the request to be sent, which waits until it is answered; None: closed."""
        with self._changed:
            if self.disk is not None and self._left_on_disk and not self._waiting:
                self._left_on_disk = False
                with contextlib.suppress(OSError, sqlite3.Error):
                    self._waiting += self.disk.waiting()
            self._changed.wait_for(lambda: self._waiting or self._closing)
            return self._waiting[0] if self._waiting and not self._closed else None

    def _deliver(self, request: Request, *, last: bool) -> bool:
        """Sends one request, maybe for the last time, and returns whether casebank answered."""
        try:
            self.send(request)
        except CasebankUnreachable as error:
            if self.disk is None:
                log.warning("casebank: a run %s: %s", "is given up" if last else "waits to be sent again", error)
            return False
        except CasebankRefused as refused:
            if refused.is_memory_off:
                log.info("casebank: a run is not stored, for memory is off: %s", refused)
            else:
                log.error("casebank: a run was refused, and is kept in `refused`: %s", refused)  # noqa: TRY400 - no crash
                self._set_aside(Refused(request, str(refused)))
        except Exception as error:  # noqa: BLE001 - no run may end the thread that sends the others
            if self._closed:  # its connections were closed meanwhile, which says nothing against the run
                return False
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
