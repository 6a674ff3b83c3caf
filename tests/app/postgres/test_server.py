"""Real processes and a real server: each home is a new folder, gone afterwards."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import asyncpg
import psutil
import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from app.postgres.server import EmbeddedPostgres, EmbeddedPostgresFailed, release, running, start
from tests.paths import ROOT

_USER = """
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
    folder = Path(tempfile.mkdtemp())
    yield folder / "home"
    release(folder / "home")
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def made() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp())
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
        (sys.executable, "-c", _USER, str(home)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def server_pid(user: subprocess.Popen[str]) -> int:
    return int(user.stdout.readline())


def leave(user: subprocess.Popen[str]) -> None:
    user.communicate(timeout=20)
    assert user.returncode == 0


def kill(user: subprocess.Popen[str]) -> None:
    user.kill()
    user.communicate(timeout=20)


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


async def test_data_survives_a_stop_that_leaves_no_process(home: Path):
    first = start(home)
    await sql(first, "CREATE TABLE kept AS SELECT 7 AS n")
    release(home)
    assert not alive(first.pid)
    assert not (home / "postgres" / "postmaster.pid").exists()
    with running(home) as second:
        assert second.pid != first.pid
        assert await sql(second, "SELECT n FROM kept") == 7


async def test_a_second_start_changes_nothing_and_one_release_undoes_both(home: Path):
    assert start(home) == start(home)
    server = start(home / ".." / home.name)
    assert await sql(server, "SELECT count(*) FROM pg_database WHERE datname = 'casebank'") == 1
    release(home)
    assert not alive(server.pid)
    release(home)


async def test_sqlalchemy_reaches_every_database_by_url(home: Path):
    server = start(home)
    await sql(server, 'CREATE DATABASE "a b/c"')
    await sql(server, 'CREATE ROLE "plain role" LOGIN')
    engine = create_async_engine(server.url("a b/c", role="plain role"))
    async with engine.connect() as connection:
        row = (await connection.execute(text("SELECT current_database(), current_user"))).one()
    await engine.dispose()
    assert tuple(row) == ("a b/c", "plain role")


async def test_nothing_acknowledged_is_lost_and_no_users_words_are_logged(home: Path):
    server = start(home)
    for setting, value in {"fsync": "on", "synchronous_commit": "on", "jit": "off", "listen_addresses": ""}.items():
        assert await sql(server, f"SHOW {setting}") == value
    with pytest.raises(asyncpg.DataError):
        await sql(server, "SELECT 'my-secret'::integer")
    assert "my-secret" not in (home / "postgres.log").read_text()


async def test_words_outside_ascii_are_found_in_either_case_and_order_by_code_point(home: Path):
    server = start(home)
    assert await sql(server, "SELECT to_tsvector('simple', '„ÄPFEL“…Saft') @@ to_tsquery('simple', 'äpfel & saft')")
    assert await sql(server, "SELECT 'B' < 'a' AND 'z' < 'ä'")


def test_two_first_starts_at_the_same_moment_share_one_server(new_home: Path):
    users = [another_user(new_home) for _ in range(3)]
    pids = {server_pid(user) for user in users}
    assert len(pids) == 1
    for user in users:
        assert alive(*pids)
        leave(user)
    assert not alive(*pids)


def test_the_server_stays_for_those_who_joined_later(home: Path):
    first = another_user(home)
    pid = server_pid(first)
    assert start(home).pid == pid
    leave(first)
    assert start(home).pid == pid
    release(home)
    assert not alive(pid)


def test_a_killed_user_is_not_counted(home: Path):
    server = start(home)
    other = another_user(home)
    assert server_pid(other) == server.pid
    kill(other)
    release(home)
    assert not alive(server.pid)


def test_a_server_whose_only_user_was_killed_is_joined_and_then_stopped(home: Path):
    other = another_user(home)
    pid = server_pid(other)
    kill(other)
    assert alive(pid)
    assert start(home).pid == pid
    release(home)
    assert not alive(pid)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_that_ends_the_last_user_ends_the_server(home: Path, number: signal.Signals):
    other = another_user(home)
    pid = server_pid(other)
    other.send_signal(number)
    other.communicate(timeout=20)
    assert other.returncode != 0
    assert not alive(pid)


def test_a_forked_child_does_not_take_the_server_with_it(home: Path):
    forks = "import os\nif os.fork() == 0: sys.exit()\nos.wait()\nprint(start(Path(sys.argv[1])).pid)"
    user = subprocess.run(
        (sys.executable, "-c", f"{_USER}\n{forks}", home),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    before, after = user.stdout.split()
    assert before == after
    assert not alive(int(before))


async def test_committed_data_survives_kill_9_of_the_server_and_of_its_user(home: Path):
    other = another_user(home)
    server_pid(other)
    server = start(home)
    await sql(server, "CREATE TABLE kept AS SELECT generate_series(1, 1000) AS n")
    kill(other)
    os.kill(server.pid, signal.SIGKILL)
    again = start(home)
    assert again.pid != server.pid
    assert await sql(again, "SELECT sum(n) FROM kept") == 500500


async def test_kill_9_of_the_server_amid_a_query_is_recovered_from_at_once(home: Path):
    server = start(home)
    busy = asyncio.create_task(
        sql(server, "SELECT count(*) FROM generate_series(1, 3000000) a, generate_series(1, 2) b")
    )
    await asyncio.sleep(0.2)
    os.kill(server.pid, signal.SIGKILL)
    again = await asyncio.to_thread(start, home)
    assert await sql(again, "SELECT 1") == 1
    with suppress(asyncpg.PostgresError, OSError):
        await busy


def test_a_pid_that_another_process_has_by_now_is_not_taken_for_the_server(home: Path):
    server = start(home)
    os.kill(server.pid, signal.SIGKILL)
    owner = (home / "postgres").stat().st_uid if os.geteuid() == 0 else None
    with subprocess.Popen(("/bin/sleep", "60"), user=owner) as stranger:
        for name in ("postmaster.pid", ".s.PGSQL.5432.lock"):
            file = home / "postgres" / name
            file.write_text(file.read_text().replace(str(server.pid), str(stranger.pid)))
        assert start(home).pid not in (server.pid, stranger.pid)
        release(home)
        assert stranger.poll() is None
        stranger.kill()


@pytest.mark.parametrize("name", ["with space", "deep/" * 30, "odd ,:;\"'$HOME `%ü&?#*"])
async def test_any_home_will_do_and_nobody_else_can_reach_the_socket(new_home: Path, name: str):
    with running(new_home / name) as server:
        assert server.socket_dir.stat().st_mode & 0o077 == 0
        assert (new_home / name / "postgres").stat().st_mode & 0o077 == 0
        engine = create_async_engine(server.url())
        async with engine.connect() as connection:
            assert (await connection.execute(text("SELECT 1"))).scalar() == 1
        await engine.dispose()
    assert not alive(server.pid)
    assert server.socket_dir == new_home / name / "postgres" or not server.socket_dir.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as somebody else")
def test_another_os_user_is_refused(home: Path):
    server = start(home)
    knock = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
    address = f"{server.socket_dir}/.s.PGSQL.{server.port}"
    stranger = subprocess.run(
        ("/usr/bin/python3", "-c", knock, address), user=65534, capture_output=True, text=True, check=False
    )
    assert "PermissionError" in stranger.stderr


def test_an_initdb_that_was_killed_leaves_nothing_in_the_way(new_home: Path):
    draft = new_home / "postgres.new"
    draft.mkdir(parents=True)
    (draft / "PG_VERSION").write_text("18\n")
    start(new_home)
    assert not draft.exists()


def test_data_of_another_major_version_is_refused_untouched(new_home: Path):
    (new_home / "postgres").mkdir(parents=True)
    (new_home / "postgres" / "PG_VERSION").write_text("16\n")
    with pytest.raises(EmbeddedPostgresFailed, match="PostgreSQL 16"):
        start(new_home)
    assert [file.name for file in (new_home / "postgres").iterdir()] == ["PG_VERSION"]


def test_a_home_that_cannot_be_is_explained(new_home: Path):
    new_home.write_text("a file")
    with pytest.raises(EmbeddedPostgresFailed, match="No Postgres at"):
        start(new_home)


def test_a_server_that_does_not_start_says_why_and_starts_when_that_is_mended(home: Path):
    start(home)
    release(home)
    configuration = home / "postgres" / "postgresql.auto.conf"
    good = configuration.read_text()
    configuration.write_text("no_such_setting = 1")
    began = time.monotonic()
    with pytest.raises(EmbeddedPostgresFailed, match="no_such_setting"):
        start(home)
    assert time.monotonic() - began < 10
    configuration.write_text(good)
    start(home)
