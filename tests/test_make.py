"""make installs for a command what it needs, once."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT

FILES = ("Makefile", "pyproject.toml", "constraints.txt", "clients/python/pyproject.toml")
pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="there is no make on the PATH")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    return tmp_path


def make(clone: Path, *arguments: str) -> str:
    """Runs make as from a shell, not as a part of the make that may run these tests; returns its output."""
    program, around = shutil.which("make") or "make", {"PATH": os.environ["PATH"]}
    return subprocess.run(
        (program, *arguments), cwd=clone, env=around, capture_output=True, text=True, check=True, timeout=60
    ).stdout


def installed_by(clone: Path, target: str) -> list[str]:
    """Returns the extras that the target would install."""
    lines = make(clone, "-n", target).splitlines()
    return [line.partition(".[")[2].partition("]")[0] for line in lines if "pip install" in line]


def test_each_command_installs_what_it_needs_and_nothing_else(clone: Path):
    assert installed_by(clone, "demo") == ["plots"]
    assert installed_by(clone, "test") == ["plots,ray,scienceworld,mcp,dev"]


def test_what_has_everything_installs_nothing_more(clone: Path):
    make(clone, "setup", "INSTALL=true")
    assert installed_by(clone, "demo") == installed_by(clone, "serve") == installed_by(clone, "test") == []


@pytest.mark.parametrize("changed", ["pyproject.toml", "constraints.txt"])
def test_a_changed_dependency_is_installed_again(clone: Path, changed: str):
    make(clone, "setup", "INSTALL=true")
    later = (clone / ".venv" / "all").stat().st_mtime + 10
    os.utime(clone / changed, (later, later))
    assert installed_by(clone, "demo") == ["plots"]
    assert installed_by(clone, "test") == ["plots,ray,scienceworld,mcp,dev"]


def test_an_older_python_is_refused_before_it_makes_an_environment(clone: Path):
    shutil.rmtree(clone / ".venv")
    old = clone / "old-python"
    old.write_text(f'#!/bin/sh\n{sys.executable} -c "import sys; sys.version_info = (3, 10, 12); $2"\n')
    old.chmod(0o755)
    with pytest.raises(subprocess.CalledProcessError) as refused:
        make(clone, "setup", "INSTALL=true", f"PYTHON={old}")
    assert "casebank needs Python 3.11 or newer: make PYTHON=python3.11" in refused.value.stderr
    assert not (clone / ".venv").exists()
