"""Postgres's programs run as their owner, and a failure of theirs says what to do."""

import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from app.postgres import EmbeddedPostgresFailed, release, start
from app.postgres.programs import explained


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as somebody else")
def test_another_os_user_is_refused(home: Path):
    server = start(home)
    knock = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
    address = f"{server.socket_dir}/.s.PGSQL.{server.port}"
    stranger = subprocess.run(
        ("/usr/bin/python3", "-c", knock, address), user=65534, capture_output=True, text=True, check=False
    )
    assert "PermissionError" in stranger.stderr


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
    assert time.monotonic() - began < 60
    configuration.write_text(good)
    start(home)


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ("could not write: No space left on device", "free some space"),
        ("initdb: error: invalid locale name", "C.UTF-8"),
        ("FATAL: something new", ""),
    ],
)
def test_what_the_system_refuses_is_explained_where_it_is_known(tmp_path: Path, said: str, advice: str):
    with pytest.raises(EmbeddedPostgresFailed, match=re.escape(said)) as caught, explained(tmp_path):
        raise OSError(said)
    assert advice in str(caught.value)
