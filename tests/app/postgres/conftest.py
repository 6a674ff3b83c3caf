"""Real processes and a real server: each home is a new folder, gone afterwards."""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import asyncpg
import psutil
import pytest

from app.postgres.server import EmbeddedPostgres, release, running
from tests.paths import ROOT, memory

USER = """
import signal, sys
from pathlib import Path
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whoever started the tests may ignore them, and children inherit that
signal.signal(signal.SIGINT, signal.default_int_handler)
from app.postgres import start
print(start(Path(sys.argv[1])).pid, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def new_home() -> Iterator[Path]:
    """Where nothing has been yet."""
    folder = Path(tempfile.mkdtemp(dir=memory()))
    yield folder / "home"
    release(folder / "home")
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def made() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(dir=memory()))
    with running(folder / "home"):
        pass
    yield folder / "home"
    shutil.rmtree(folder)


@pytest.fixture
def home(new_home: Path, made: Path) -> Path:
    """Where a server has been started and stopped before: saves an initdb."""
    subprocess.run(("/bin/cp", "-a", made, new_home), check=True)
    return new_home


def another_user(home: Path) -> subprocess.Popen[str]:
    """A process that uses the server until its standard input is closed."""
    return subprocess.Popen(
        (sys.executable, "-c", USER, str(home)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def server_pid(user: subprocess.Popen[str]) -> int:
    return int(user.stdout.readline())


def leave(user: subprocess.Popen[str]) -> None:
    user.communicate(timeout=60)
    assert user.returncode == 0


def kill(user: subprocess.Popen[str]) -> None:
    user.kill()
    user.communicate(timeout=60)


def alive(pid: int) -> bool:
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


async def sql(server: EmbeddedPostgres, query: str, database: str = "casebank") -> object:
    connection = await asyncpg.connect(
        host=str(server.socket_dir), port=server.port, user="postgres", database=database
    )
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()
