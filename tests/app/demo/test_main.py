"""The demo ends with commands that exist where it ran."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

from app.demo.main import next_commands, own_command
from tests.processes import casebank, ran


def _installed(folder: Path) -> Path:
    """Returns the interpreter of a made-up environment that has casebank."""
    (folder / "bin").mkdir(parents=True)
    for name in ("python", "casebank"):
        (folder / "bin" / name).write_text("#!/bin/sh\n")
        (folder / "bin" / name).chmod(0o755)
    return folder / "bin" / "python"


def test_casebank_is_named_where_the_shell_finds_it(tmp_path: Path):
    python = _installed(tmp_path / "env")
    assert own_command(python, str(python.parent), tmp_path) == "casebank"
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "casebank").symlink_to(python.with_name("casebank"))  # as pipx does
    assert own_command(python, str(tmp_path / "links"), tmp_path) == "casebank"


def test_its_path_is_told_where_the_shell_finds_none_or_another_one(tmp_path: Path):
    python, other = _installed(tmp_path / "my env"), _installed(tmp_path / "other")
    for path in ("", str(other.parent)):
        assert own_command(python, path, tmp_path) == "'my env/bin/casebank'"
        assert own_command(python, path, tmp_path / "other") == f"'{python.with_name('casebank')}'"


def test_the_module_is_told_where_the_installation_has_no_script(tmp_path: Path):
    python = tmp_path / "bin" / "python"
    assert own_command(python, os.environ["PATH"], tmp_path) == f"{python} -P -m app.cli"


def test_each_printed_command_is_one_of_casebank(tmp_path: Path):
    command = own_command(Path(sys.executable), "", Path.cwd())
    begin = shlex.split(command)
    printed = [shlex.split(line) for line in next_commands(command, "u").splitlines()]
    commands = [words[: len(begin) + 1] for words in printed if words[: len(begin)] == begin]
    assert len(commands) == 6
    subprocess.run([*commands[0], "--help"], capture_output=True, timeout=60, check=True)
    for words in commands:
        casebank(tmp_path, words[len(begin)], "--help")  # the same words in a fork, which imports nothing again


def test_a_folder_that_cannot_take_the_numbers_is_told_before_the_runs(tmp_path: Path):
    (tmp_path / "taken").write_text("a file")
    for folder in ("taken", "taken/out"):
        done = ran(tmp_path / "home", "demo", "--tasks", "10", "--out-dir", str(tmp_path / folder))
        assert done.returncode != 0
        assert "taken" in done.stderr
        assert done.stdout == ""
        assert not (tmp_path / "home").exists()
