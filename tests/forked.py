"""A command of casebank as a process that the fork server starts."""

import atexit
import json
import os
import select
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

IS_POSSIBLE = hasattr(os, "pidfd_open")
"""Whether the system tells the end of another's child, as only Linux does."""

FORKS = "forks"
"""Name of the server's socket, in the folder of the stubs."""


class Forked:
    """A process with the methods of `subprocess.Popen` that tests use."""

    def __init__(
        self, args: Sequence[str], environment: Mapping[str, str], streams: tuple[IO[bytes], IO[bytes], IO[bytes]]
    ) -> None:
        self.args = args
        self.returncode: int | None = None
        command = {"words": list(args), "environment": dict(environment), "folder": str(ROOT)}
        self._answers = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._answers.connect(str(_folder() / FORKS))
        socket.send_fds(self._answers, [json.dumps(command).encode()], [each.fileno() for each in streams])
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
    """Returns whether a fork is the process that a start would be."""
    return IS_POSSIBLE and environment.get("COLUMNS") == COLUMNS


def stub(program: str) -> Path:
    """Returns a program of the same name that is a fork: for shells, and for programs that start it themselves.

    It passes SIGTERM, SIGINT and SIGHUP on, and whoever kills it kills the fork.
    """
    path = _folder() / Path(program).name
    if not path.exists():
        words = shlex.join([sys.executable, "-IS", str(ROOT / "tests" / "forked_command.py"), str(_folder() / FORKS)])
        path.write_text(f'#!/bin/sh\nexec {words} {shlex.quote(program)} "$@"\n')
        path.chmod(0o700)
    return path


@cache
def _folder() -> Path:
    """Returns the folder of the stubs and of the socket of this process's server, which the first to connect starts."""
    folder = Path(tempfile.mkdtemp(prefix="casebank-tests-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(str(folder / FORKS))
    listener.listen()
    threading.Thread(target=_serve, args=(listener,), daemon=True).start()
    return folder


def _serve(listener: socket.socket) -> None:
    """Starts the server when somebody connects; it ends with this process, when its standard input ends."""
    select.select([listener], [], [])
    command = (sys.executable, "-m", "tests.fork_server", str(listener.fileno()))
    around = {name: value for name, value in os.environ.items() if not name.startswith("CASEBANK_")}
    with listener:
        server = subprocess.Popen(
            command,
            env=around | {"COLUMNS": COLUMNS},
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            pass_fds=(listener.fileno(),),
        )
    atexit.register(server.communicate)
