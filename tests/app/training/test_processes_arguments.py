"""No user's name stands in a process's arguments, which everybody on the machine can read."""

import asyncio
import json
import os
import runpy
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from app.commands.train import _without_name
from app.settings import Settings
from app.training.processes import Trainings
from tests.paths import ROOT
from tests.processes import surroundings

NAME = "a-name-that-nobody-else-has"


async def test_a_training_that_the_service_starts_is_told_the_user_where_nobody_else_can_read_it(
    database_url: str, tmp_path: Path
):
    trainings = Trainings(Settings(home=tmp_path, database_url=database_url, master_key="5" * 64))
    trainings.start(NAME, "agent-of-theirs")
    seen: list[str] = []
    async with asyncio.timeout(60):
        while "app.training" not in seen:
            await asyncio.sleep(0.01)
            for child in psutil.Process().children():
                with suppress(psutil.Error):  # children of other tests end
                    seen += child.cmdline()
    await trainings.close()
    assert [word for word in seen if NAME in word or "theirs" in word] == []


def trained(home: Path, given: str, *options: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "app.training", *options],
        input=given,
        env=surroundings(home, **settings),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_profile_of_standard_input_is_the_one_that_is_trained(database_url: str, tmp_path: Path):
    given = json.dumps({"user": NAME, "agent": "a"})
    done = trained(tmp_path, given, "--profile-from-stdin", DATABASE_URL=database_url, CASEBANK_MASTER_KEY="5" * 64)
    assert done.returncode == 0, done.stderr
    assert NAME in done.stdout


def test_the_help_calls_the_command_as_one_types_it_and_says_that_user_and_agent_go_together(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(sys, "argv", ["app.training", "--help"])
    with pytest.raises(SystemExit):
        runpy.run_module("app.training", run_name="__main__")
    said = capsys.readouterr().out
    assert "Usage: casebank train [OPTIONS]" in said
    assert "app.training" not in said
    assert "with --agent" in said


@pytest.mark.parametrize(
    ("words", "kept", "user"),
    [
        (["--user", "ada", "--agent", "a"], ["--user", "-", "--agent", "a"], "ada\n"),
        (["--agent=a", "--user=ada"], ["--agent=a", "--user=-"], "ada\n"),
        (["--user", "-", "--agent", "a"], ["--user", "-", "--agent", "a"], None),
        (["--seed", "1"], ["--seed", "1"], None),
    ],
)
def test_the_command_hands_a_name_on_by_standard_input(words: list[str], kept: list[str], user: str | None):
    assert _without_name(words) == (kept, user)


def test_who_interrupts_the_start_of_a_training_sees_no_traceback(tmp_path: Path):
    interrupt = (
        "import sys\n"
        "class Interrupter:\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'app.runtime':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupter())\n"
    )
    (tmp_path / "sitecustomize.py").write_text(interrupt)
    done = trained(tmp_path, "", PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}")
    assert (done.returncode, done.stderr) == (130, "")
