"""The fenced blocks of the docs' pages, run by a shell that has the programs, on a home of its own."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from app.postgres import program
from tests.forked import is_possible, stub
from tests.paths import ROOT
from tests.processes import CASEBANK, surroundings

ADDRESS = "http://127.0.0.1:8700"
"""Where the pages have the service."""


def blocks(page: str, language: str) -> list[str]:
    """Returns the fenced blocks of that language of a page in docs/."""
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / "docs" / page).read_text(), re.DOTALL | re.MULTILINE)


def shell(home: Path, commands: str, url: str = ADDRESS, *, folder: Path = ROOT, **variables: str) -> str:
    """Runs commands of a page, with the service at that URL, and returns what they print; each must end well.

    Nobody types: what reads its standard input finds the end of it.
    """
    path = f"{Path(CASEBANK).parent}:{program('pg_dump').parent}:{os.environ['PATH']}"
    around = surroundings(home, PATH=path, **variables)
    if is_possible(around):
        around["PATH"] = f"{stub(CASEBANK).parent}:{around['PATH']}"
    done = subprocess.run(
        ("/bin/bash", "-euo", "pipefail", "-c", commands.replace(ADDRESS, url)),
        env=around,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def python(home: Path, program_text: str, url: str = ADDRESS, *, given: Sequence[str] = (), **variables: str) -> str:
    """Runs a program of a page as ``shell`` does, with the Python client installed, and with these arguments."""
    command = shlex.join([sys.executable, "-c", program_text, *given])
    return shell(home, command, url, PYTHONPATH=f"{ROOT}:{ROOT / 'clients' / 'python'}", **variables)
