"""The machine: what no database is asked for."""

import stat
from pathlib import Path

from pydantic import SecretStr

from app.doctor import machine
from app.settings import Settings
from tests.app.doctor.conftest import look, settings


async def test_secrets_that_others_can_read_are_found(url: str, tmp_path: Path):
    made = settings(url, tmp_path)
    assert made.home_secrets
    path = tmp_path / "secrets.json"
    assert (await look(url, tmp_path))["secrets"].ok
    path.chmod(stat.S_IRUSR | stat.S_IROTH)
    assert (await look(url, tmp_path))["secrets"].ok is False


def test_where_nothing_is_to_be_trained_torch_is_not_missed(tmp_path: Path):
    finding = machine.training(Settings(home=tmp_path, train_every_s=0))
    assert finding.ok is not False


def test_the_space_of_a_home_that_is_not_there_yet_is_that_of_the_folder_above(tmp_path: Path):
    assert str(tmp_path) in machine.disk(Settings(home=tmp_path / "later" / "home")).detail


async def test_a_secret_that_is_too_short_is_found(url: str, tmp_path: Path):
    finding = (await look(url, tmp_path, jwt_secret=SecretStr("hunter2")))["tokens"]
    assert (finding.ok, finding.detail) == (False, "HS256, a secret of 7 bytes")


async def test_published_keys_that_nobody_can_reach_are_found(url: str, tmp_path: Path):
    finding = (await look(url, tmp_path, jwks_url="http://127.0.0.1:1/keys"))["tokens"]
    assert finding.ok is False
    assert "ConnectError" in finding.detail
