"""The command that trains: whom it trains, and what it prints."""

import asyncio
import io
import sys
from pathlib import Path

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner, Result

from app.settings import Settings
from app.training.command import as_table, engine, main, run
from tests.app.doctor.conftest import as_owner
from writer.training.result import TrainingResult


@pytest.mark.parametrize("words", [("--user", "alice"), ("--agent", "a"), ("--engine", "abacus")])
def test_half_a_profile_and_an_unknown_engine_are_refused(words: tuple[str, ...], tmp_path: Path):
    assert train(tmp_path, *words).exit_code == 2


def test_a_file_in_place_of_the_folder_for_the_results_is_refused_before_the_training(tmp_path: Path):
    (tmp_path / "taken").touch()
    refused = train(tmp_path, "--out-dir", str(tmp_path / "taken"))
    assert (refused.exit_code, "is a file" in refused.stderr) == (2, True)


def test_without_its_extra_the_engine_ray_is_refused_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delitem(sys.modules, "app.training.ray", raising=False)
    monkeypatch.setitem(sys.modules, "ray", None)  # as if it were not installed
    refused = train(tmp_path, "--engine", "ray")
    assert (refused.exit_code, "pip install 'casebank[ray]' in" in refused.stderr) == (2, True)


def train(home: Path, *words: str) -> Result:
    app = typer.Typer()
    app.command()(main)
    return CliRunner().invoke(app, words, env={"CASEBANK_HOME": str(home), "COLUMNS": "200"})


async def test_a_bank_without_profiles_has_nobody_to_train(database_url: str, tmp_path: Path):
    settings = Settings(home=tmp_path, database_url=database_url, master_key="5" * 64)
    assert await run(settings, engine("local"), None, seed=0) == []


def test_a_misspelt_user_or_agent_is_told_and_ends_with_an_error(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    asyncio.run(as_owner(database_url, "INSERT INTO profiles (user_sub, agent_key) VALUES ('alice', 'a')"))
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("CASEBANK_MASTER_KEY", "5" * 64)
    assert train(tmp_path, "--user", "alice", "--agent", "a").exit_code == 0
    known = {("alcie", "a"): "this user has no agent", ("alice", "aa"): "the agents of this user are a"}
    for (user, agent), words in known.items():
        misspelt = train(tmp_path, "--user", user, "--agent", agent)
        assert (misspelt.exit_code, misspelt.stderr.splitlines()[-1]) == (1, f"casebank: no such profile: {words}")


def test_the_table_has_a_line_for_each_profile():
    console = Console(file=io.StringIO(), width=120, record=True)
    console.print(
        as_table(
            [
                TrainingResult("alice", "a", "candidate", version=3, decisions=100),
                TrainingResult("bob", "b", "erased"),
                TrainingResult("carol", "a", "too few decisions", decisions=37, missing=63),
            ]
        )
    )
    lines = console.export_text().splitlines()
    alice, bob, carol = (next(line for line in lines if user in line) for user in ("alice", "bob", "carol"))
    assert ("q-3" in alice, "100" in alice, "candidate" in alice) == (True, True, True)
    assert "erased" in bob
    assert "63 more rewarded decisions are needed" in carol
