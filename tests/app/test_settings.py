"""The settings: what others say of them is true."""

import re
from pathlib import Path
from typing import Any

import pytest

from app.providers import llm, openai
from app.settings import Settings
from tests.paths import ROOT

NAMES = {f"CASEBANK_{name.upper()}" for name in Settings.model_fields}
OPTIONS = {"CASEBANK_DATA"}
"""Read by the command line itself."""
HINTS = [*openai.CHECK.values(), openai.CHECK_DIMENSION, *llm.CHECK.values()]
SOURCES = sorted((ROOT / "app").rglob("*.py"))


@pytest.mark.parametrize("hint", HINTS)
def test_what_an_error_tells_an_operator_to_check_can_be_set(hint: str):
    assert set(re.findall(r"\w*_\w*", hint)) <= NAMES


@pytest.mark.parametrize("file", SOURCES, ids=[str(path.relative_to(ROOT)) for path in SOURCES])
def test_every_setting_that_the_code_names_exists(file: Path):
    named = set(re.findall(r"\bCASEBANK_[A-Z_]*[A-Z]\b(?!_)", file.read_text()))
    assert named - OPTIONS <= NAMES


def test_every_setting_of_the_table_in_the_documentation_exists():
    text = (ROOT / "docs" / "operating.md").read_text()
    table = text[text.index("| name | default |") : text.index("## Tokens")]
    named = set(re.findall(r"`([A-Z][A-Z_]+)`", table)) - {"DATABASE_URL"}
    assert len(named) > 20
    assert {f"CASEBANK_{name}" for name in named} <= NAMES


@pytest.mark.parametrize(
    "given",
    [
        {
            "database_url": "postgresql://db/casebank",
            "pgvector": "off",
            "jwt_secret": "j" * 32,
            "master_key": "ab" * 32,
        },
        {"database_url": None, "explore": False, "upkeep_every_s": 0.5, "hidden_units": 8},
        {},
    ],
)
def test_another_process_with_the_environment_has_the_same_settings(
    given: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("DATABASE_URL", "postgresql://elsewhere/casebank")
    monkeypatch.setenv("CASEBANK_POOL_SIZE", "3")
    here = Settings(home=tmp_path, **given)
    environment = here.as_environment()
    monkeypatch.delenv("DATABASE_URL")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert Settings() == here
    assert here.pool_size == 3


@pytest.mark.parametrize("empty", ["", " "])
def test_an_empty_home_is_the_users_data_directory_and_never_the_current_one(
    empty: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("CASEBANK_HOME", raising=False)
    usual = Settings().home
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CASEBANK_HOME", empty)
    assert Settings().home == usual
    assert usual.is_absolute()


def test_secrets_that_nobody_gave_are_made_once_and_kept_for_the_owner_alone(tmp_path: Path):
    first, second = Settings(home=tmp_path), Settings(home=tmp_path)
    assert first.signing_secret == second.signing_secret
    assert first.master_key_bytes == second.master_key_bytes
    assert (tmp_path / "secrets.json").stat().st_mode & 0o777 == 0o600
