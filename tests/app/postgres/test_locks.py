"""Who uses a server is known, however they came and went: the last one takes it along, and nobody dead is counted."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from app.postgres import release, start
from tests.app.postgres.conftest import USER, alive, another_user, kill, leave, server_pid
from tests.paths import ROOT


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
    other.communicate(timeout=60)
    assert other.returncode != 0
    assert not alive(pid)


def test_a_forked_child_does_not_take_the_server_with_it(home: Path):
    forks = "import os\nif os.fork() == 0: sys.exit()\nos.wait()\nprint(start(Path(sys.argv[1])).pid)"
    user = subprocess.run(
        (sys.executable, "-c", f"{USER}\n{forks}", home),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    before, after = user.stdout.split()
    assert before == after
    assert not alive(int(before))


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
