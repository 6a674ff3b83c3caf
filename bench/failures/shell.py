"""The world of a shell: real programs in a folder of their own for each attempt; every error is the program's own."""

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.failures.kinds import Kind, Names, Result, Task
from bench.failures.shell_files import FILES
from bench.failures.shell_kinds import READS, TOPICS, VALUES

TIMEOUT_S = 10
_OUTSIDE = re.compile(r"(?:^|[\s=<>\"'(:])(?:/|~)|\.\.|\$HOME")
"""Words of a command line that may lead out of its folder: an absolute path, the home, the folder above."""


class ShellWorld:
    """Work on files whose formats and programs are not what one would think."""

    name = "shell"
    tool = "bash"
    argument = "command"
    kinds: Sequence[Kind] = (*READS, *FILES)
    names: Sequence[Names] = TOPICS
    values: Mapping[str, Sequence[str]] = VALUES

    def __init__(self, folder: Path, timeout_s: float = TIMEOUT_S) -> None:
        self._folder, self._timeout_s = folder / "work", timeout_s
        path = f"{self._folder / 'bin'}:/usr/bin:/bin:{Path(sys.executable).parent}"
        self._environment = {"PATH": path, "HOME": str(self._folder), "TMPDIR": str(self._folder), "LC_ALL": "C"}

    def attempt(self, task: Task, act: str) -> Result:
        """Runs the command line in a new folder, and compares the answer.

        Raises:
            ValueError: the command line names a place outside its folder.
        """
        if _OUTSIDE.search(act):
            raise ValueError(f"this may leave its folder: {act}")
        shutil.rmtree(self._folder, ignore_errors=True)
        (self._folder / "bin").mkdir(parents=True)
        self._run(task.setup).check_returncode()
        done = self._run(act)
        if done.returncode:
            told = (done.stdout + done.stderr).decode(errors="replace").strip()
            return Result(done=False, output=f"{told}\nexit status {done.returncode}".strip())
        answer = (self._run(task.goal) if task.goal else done).stdout.decode(errors="replace").strip()
        if answer != task.answer:
            return Result(done=False, output=f"AssertionError: the answer {answer!r} is not right")
        return Result(done=True, output=answer)

    def _run(self, line: str) -> subprocess.CompletedProcess[bytes]:
        """Runs a command line, which is killed with all its programs when its time is up."""
        return subprocess.run(  # noqa: S603 - the lines are the world's own
            ("timeout", "-s", "KILL", str(self._timeout_s), "sh", "-c", line),  # noqa: S607 - found on PATH
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
