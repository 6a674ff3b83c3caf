"""A command of casebank as a process that the fork server starts."""

import atexit
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO

from tests.paths import ROOT

COLUMNS = "500"
"""Width of the output, which the commands read when they are imported."""

_turn = threading.Lock()
_servers: list[socket.socket] = []


class Forked:
    """A process with the methods of `subprocess.Popen` that tests use."""

    def __init__(
        self, args: Sequence[str], environment: Mapping[str, str], streams: tuple[IO[bytes], IO[bytes], IO[bytes]]
    ) -> None:
        self.args = args
        self.returncode: int | None = None
        command = {"words": list(args), "environment": dict(environment), "folder": str(ROOT)}
        self._answers, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            descriptors = [each.fileno() for each in (*streams, theirs)]
            socket.send_fds(_server(), [json.dumps(command).encode()], descriptors)
        self.pid = int(self._answers.recv(64))

    def poll(self) -> int | None:
        """Returns what the process ended with, or None while it runs."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Waits for the end and returns what the process ended with; negative: the number of a signal."""
        if self.returncode is None:
            self._answers.settimeout(timeout)
            try:
                status = int(self._answers.recv(64))
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired(self.args, timeout or 0) from None
            self.returncode = os.waitstatus_to_exitcode(status)
            self._answers.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Sends the signal, if the process runs."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Sends SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Sends SIGKILL."""
        self.send_signal(signal.SIGKILL)


def is_possible(environment: Mapping[str, str]) -> bool:
    """Returns whether a fork is the process that a start would be: only Linux tells the end of another's child."""
    return hasattr(os, "pidfd_open") and environment.get("COLUMNS") == COLUMNS


def for_shells(program: str) -> tuple[Path, int]:
    """Returns a folder with the program, by its own name but as a fork, and the descriptor that a shell must inherit.

    The shell's variable `FORKS` has the descriptor's number.
    """
    return _folder(program), _server().fileno()


@cache
def _folder(program: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="casebank-tests-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    words = shlex.join([sys.executable, "-IS", str(ROOT / "tests" / "forked_command.py"), program])
    stub = folder / Path(program).name
    stub.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    stub.chmod(0o700)
    return folder


def _server() -> socket.socket:
    """Returns the socket of this process's server, which ends with this process."""
    with _turn:
        if not _servers:
            control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            command = (sys.executable, "-m", "tests.fork_server", str(theirs.fileno()))
            around = {name: value for name, value in os.environ.items() if not name.startswith("CASEBANK_")}
            with theirs:
                server = subprocess.Popen(
                    command,
                    env=around | {"COLUMNS": COLUMNS},
                    cwd=ROOT,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    pass_fds=(theirs.fileno(),),
                )
            _servers.append(control)
            atexit.register(_end, server, control)
        return _servers[0]


def _end(server: subprocess.Popen[bytes], control: socket.socket) -> None:
    control.close()
    server.wait(timeout=30)
