"""The machine: what no database is asked for."""

import stat
from pathlib import Path

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
