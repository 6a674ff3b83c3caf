"""Environment variables of the settings: every name in code, docs and hints is one."""

import os
import re
from pathlib import Path
from typing import Any

import pytest

from app.providers.llm import OpenAIModel
from app.providers.openai import CHECK_DIMENSION, OpenAIEmbedder
from app.settings import OTHER_READERS, Connections, Limits, Settings, Timeouts, WorkerPace
from app.settings.numbers import Numbers
from tests.paths import ROOT

NAMES = {f"CASEBANK_{name.upper()}" for name in Settings.model_fields}
HINTS = [*OpenAIEmbedder.advice.values(), CHECK_DIMENSION, *OpenAIModel.advice.values()]
SOURCES = sorted((ROOT / "app").rglob("*.py"))


@pytest.mark.parametrize("hint", HINTS)
def test_what_an_error_tells_an_operator_to_check_can_be_set(hint: str):
    assert set(re.findall(r"\w*_\w*", hint)) <= NAMES


@pytest.mark.parametrize("file", SOURCES, ids=[str(path.relative_to(ROOT)) for path in SOURCES])
def test_every_setting_that_the_code_names_exists(file: Path):
    named = set(re.findall(r"\bCASEBANK_[A-Z_]*[A-Z]\b(?!_)", file.read_text()))
    assert named - OTHER_READERS <= NAMES


def test_there_are_at_most_45_settings():
    assert len(Settings.model_fields) <= 45


def test_a_number_that_is_left_out_keeps_its_default(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CASEBANK_LIMITS", " user_reads = 600, burst_s=2.5,")
    assert Settings().limits == Limits(user_reads=600, burst_s=2.5)
    assert Settings().limits.user_writes == 3_000


@pytest.mark.parametrize(
    "numbers", [Limits(user_reads=7), Limits.off(), Timeouts(llm=9), Connections(per_address=0), WorkerPace(attempts=2)]
)
def test_the_text_of_numbers_sets_them(numbers: Numbers):
    assert type(numbers).model_validate(str(numbers)) == numbers


@pytest.mark.parametrize(("text", "limits"), [("off", Limits.off()), ("false", Limits.off()), ("on", Limits())])
def test_limits_are_switched_by_a_word(text: str, limits: Limits):
    assert Limits.model_validate(text) == limits


def test_limits_that_are_off_bound_nothing():
    assert {number for name, number in Limits.off() if name != "burst_s"} == {0}


def test_a_variable_that_is_no_setting_is_named_with_the_nearest_one(monkeypatch: pytest.MonkeyPatch):
    for name in [each for each in os.environ if each.startswith("CASEBANK_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("CASEBANK_POOL_SIZES", "3")
    monkeypatch.setenv("CASEBANK_WEATHER", "fine")
    monkeypatch.setenv("CASEBANK_HOME", "/somewhere")
    monkeypatch.setenv("CASEBANK_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("CASEBANK_PORT_8700_TCP_PORT", "8700")
    assert Settings.unknown_variables() == [
        "CASEBANK_POOL_SIZES is no setting; did you mean CASEBANK_POOL_SIZE?",
        "CASEBANK_WEATHER is no setting",
    ]


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
        {"database_url": None, "explore": False, "upkeep_every_s": 0.5, "pruned_kept_days": 8},
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


def test_a_home_that_no_shell_expanded_is_in_the_users_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CASEBANK_HOME", "~/memory")  # as a line of a file of settings has it
    assert Settings().home == tmp_path / "memory"


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


def test_secrets_are_on_the_disk_before_anything_is_encrypted_with_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    kept = tmp_path / "secrets.json"
    synced: list[tuple[int, int, bool]] = []

    def fsync(file: int) -> None:
        known = os.fstat(file)
        synced.append((known.st_ino, known.st_size, kept.exists()))

    monkeypatch.setattr(os, "fsync", fsync)
    assert Settings(home=tmp_path).master_key_bytes
    whole, (folder, _, _) = synced
    assert whole == (kept.stat().st_ino, kept.stat().st_size, False)  # whole, before it got its name
    assert folder == tmp_path.stat().st_ino


def test_another_process_reads_no_file_of_variables_over_the_settings(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CASEBANK_ENV_FILE", "/etc/casebank/environment")  # of a service, with its DATABASE_URL
    environment = Settings(database_url=None).as_environment()
    assert not {"CASEBANK_ENV_FILE", "DATABASE_URL"} & set(environment)
