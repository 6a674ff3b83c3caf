"""A service that runs as a process of its own, as an operator starts it, and what tests ask of it."""

import atexit
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import IO, Any, Self, TypeVar

import httpx
import psutil

from app import postgres
from app.auth.tokens import issue_token
from app.processes.own_service import free_port
from app.settings import Settings
from tests.forked import COLUMNS, IS_POSSIBLE, Forked, is_possible, stub
from tests.paths import ROOT, memory

CASEBANK = str(Path(sys.executable).parent / "casebank")
CASEBANK_FORK = str(stub(CASEBANK)) if IS_POSSIBLE else CASEBANK
"""The same program, as a fork where that is possible."""
PATIENCE_S = 120
"""Seconds before `until` gives up: a service starts slowly on a busy machine."""

LONGEST_PAUSE_S = 0.2
"""Seconds between two looks of `until`, in the end: looks take the time of what they wait for."""

ANSWER_S = 60.0
"""Seconds that a client of a test waits for an answer: the machine may be busy with other things."""

CERTIFICATES = ssl.create_default_context()
"""Read once: each client of httpx reads them for itself otherwise, which takes 50 ms of a processor."""

T = TypeVar("T")


def until(found: Callable[[], T]) -> T:
    """Returns the first result that counts as true."""
    deadline, pause_s = time.monotonic() + PATIENCE_S, 0.02
    while time.monotonic() < deadline:
        if result := found():
            return result
        time.sleep(pause_s)
        pause_s = min(1.2 * pause_s, LONGEST_PAUSE_S)
    raise AssertionError("it never came")


def get(url: str, **more: Any) -> httpx.Response:
    """Sends one request and returns the answer."""
    return httpx.get(url, timeout=ANSWER_S, verify=CERTIFICATES, **more)


def surroundings(home: Path, **settings: str) -> dict[str, str]:
    """Returns the environment of a command with these settings and no others."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("CASEBANK_") and k != "DATABASE_URL"}
    return inherited | {"CASEBANK_HOME": str(home), "COLUMNS": COLUMNS, "CASEBANK_EXPLORE": "false"} | settings


def casebank(home: Path, *words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end, which must be a good one."""
    done = ran(home, *words, **settings)
    assert done.returncode == 0, done.stderr
    return done


def ran(home: Path, *words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end, whichever it is."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = started(words, surroundings(home, **settings), out, err)
        try:
            process.wait()
        finally:
            process.kill()
        for each in (out, err):
            each.seek(0)
        return subprocess.CompletedProcess(process.args, process.returncode, out.read().decode(), err.read().decode())


def started(
    words: Sequence[str], environment: dict[str, str], out: IO[bytes], err: IO[bytes]
) -> Forked | subprocess.Popen[bytes]:
    """Starts a command, as a fork where that is the same."""
    command = (CASEBANK, *words)
    if not is_possible(environment):
        return subprocess.Popen(command, env=environment, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
    with Path(os.devnull).open("rb") as nothing:
        return Forked(command, environment, (nothing, out, err))


def alive(pid: int) -> bool:
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


def postmaster_pid(home: Path) -> int | None:
    """Returns the pid of the home's Postgres, or None where none is up."""
    with suppress(FileNotFoundError):
        return int((home / "postgres" / "postmaster.pid").read_text().split()[0])
    return None


def postgres_processes(home: Path) -> list[psutil.Process]:
    """Returns every living process of the home's Postgres: they all work in its data folder."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.name() == "postgres" and process.cwd() == str(home / "postgres"):
                found.append(process)
    return found


@contextmanager
def new_home() -> Iterator[Path]:
    """Yields a place for the state of services, and leaves neither it nor a Postgres behind.

    Not below pytest's own folder: another pytest that starts meanwhile closes that one to Postgres's OS user.
    """
    with tempfile.TemporaryDirectory(prefix="casebank-tests-", dir=memory(), ignore_cleanup_errors=True) as folder:
        home = Path(folder).resolve() / "home"
        try:
            yield home
        finally:
            if (home / "postgres").exists():
                with postgres.running(home):
                    pass


@cache
def _migrated_data() -> Path:
    """Returns the data folder of a migrated, empty bank whose server is stopped; each test process makes it once."""
    folder = Path(tempfile.mkdtemp(prefix="casebank-tests-", dir=memory())).resolve()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    casebank(folder / "home", "migrate")
    data = folder / "home" / "postgres"
    with (data / "postgresql.conf").open("a") as settings:
        settings.write("shared_buffers = 32MB\n")  # an eighth of the memory takes 40 ms of a processor at each start
    return data


@contextmanager
def migrated_home() -> Iterator[Path]:
    """Yields a home as after `casebank migrate`, copied from one: for tests that are not about the first start."""
    data = _migrated_data()
    with new_home() as home:
        home.mkdir(mode=0o700)
        subprocess.run(("/bin/cp", "-a", str(data), str(home / "postgres")), check=True)
        yield home


class Service:
    """`casebank serve` as a process of its own; a `with` starts it and stops it."""

    program: tuple[str, ...] = (CASEBANK, "serve", "--port")

    def __init__(self, home: Path, **settings: str) -> None:
        self.port = free_port()
        self.home = home
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = home.parent / f"service-{self.port}.log"
        self.process: Forked | subprocess.Popen[bytes] | None = None
        self._environment = surroundings(home, **settings)

    def __enter__(self) -> Self:
        self.start()
        try:
            self.ready()
        except BaseException:
            self.kill()  # a `with` whose beginning fails has no end
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is not None:
            self.stop()

    def start(self) -> None:
        with self.log.open("ab") as log:
            command = (*self.program, str(self.port))
            if command[0] == CASEBANK:
                self.process = started(command[1:], self._environment, log, log)
            else:
                self.process = subprocess.Popen(command, env=self._environment, cwd=ROOT, stdout=log, stderr=log)

    def ready(self) -> None:
        until(self._is_ready)

    def _is_ready(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        with suppress(OSError, httpx.TransportError), socket.create_connection(("127.0.0.1", self.port)):
            return get(f"{self.url}/readyz").status_code == 200
        return False

    def end(self, number: signal.Signals) -> int:
        """Sends the signal that is to end the process, and returns what it ended with."""
        process, self.process = self.process, None
        process.send_signal(number)
        return process.wait(timeout=120)

    def stop(self) -> int:
        return self.end(signal.SIGTERM)

    def kill(self) -> None:
        self.end(signal.SIGKILL)

    def bearer(self, user: str) -> dict[str, str]:
        settings = Settings(home=self.home)
        token = issue_token(
            settings.signing_secret,
            user=user,
            issuer=settings.jwt_issuer,
            audience=settings.jwt_audience,
            ttl=timedelta(hours=1),
            now=datetime.now(UTC),
        )
        return {"Authorization": f"Bearer {token}"}

    def client(self, user: str) -> httpx.Client:
        return httpx.Client(base_url=self.url, headers=self.bearer(user), timeout=ANSWER_S, verify=CERTIFICATES)


def retain(client: httpx.Client, task: str, **more: Any) -> str:
    """Retains a run and returns the case's id."""
    answer = client.post("/v1/retain", json={"agent": "a", "task": task, "outcome": "success", **more})
    assert answer.status_code == 202, answer.text
    return answer.json()["case_id"]


def retrieve(client: httpx.Client, query: str) -> dict[str, Any]:
    answer = client.post("/v1/retrieve", json={"agent": "a", "query": query})
    assert answer.status_code == 200, answer.text
    return answer.json()


def worked(client: httpx.Client, case_id: str) -> None:
    """Waits for the case and its lessons to be ready."""
    ready = {"status": "ready", "lessons": "ready"}
    until(lambda: ready.items() <= client.get(f"/v1/cases/{case_id}").json().items())


def all_worked(client: httpx.Client) -> None:
    """Waits until no case, and no lesson of one, is pending."""
    until(lambda: not any("pending" in (case["status"], case["lessons"]) for case in bank(client)))


def pages(client: httpx.Client, path: str, name: str, **filters: str) -> list[dict[str, Any]]:
    """Returns every entry of a listing, page by page."""
    found: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        page = client.get(path, params={"limit": "37", **filters, **cursor}).json()
        found += page[name]
        if page["next_cursor"] is None:
            return found
        cursor = {"cursor": page["next_cursor"]}


def bank(client: httpx.Client, status: str = "any") -> list[dict[str, Any]]:
    """Returns every case of that status."""
    return pages(client, "/v1/cases", "cases", status=status)
