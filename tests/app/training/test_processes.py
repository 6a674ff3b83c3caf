"""Trainings: processes of their own, one a user, ended with the service."""

import asyncio
from pathlib import Path

import asyncpg
import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from app.postgres.pools import dsn
from app.settings import Settings
from app.training.processes import TrainingFailed, Trainings


def trainings(home: Path, url: str) -> Trainings:
    return Trainings(Settings(home=home, database_url=url, master_key="5" * 64))


async def test_a_user_trains_once_at_a_time_and_another_may_wait(database_url: str, tmp_path: Path):
    under_way = trainings(tmp_path, database_url)
    assert under_way.start("alice", "a") == "started"
    assert under_way.start("alice", "b") == "running"
    assert under_way.start("bob", "a") == "started"
    await under_way.close()
    await asyncio.sleep(0)
    assert under_way.start("alice", "a") == "started"
    await under_way.close()


async def test_a_training_of_every_profile_counts_and_tells_what_came_of_them(database_url: str, tmp_path: Path):
    await trainings(tmp_path, database_url).train_all()  # with nobody to learn from it ends well
    owner = await asyncpg.connect(dsn(database_url))
    await owner.execute("INSERT INTO profiles (user_sub, agent_key) VALUES ('alice', 'a'), ('bob', 'b')")
    await owner.close()
    outcome = "learning or its trials are off"
    before = REGISTRY.get_sample_value("casebank_trainings_total", {"outcome": outcome}) or 0
    with capture_logs() as logged:
        await trainings(tmp_path, database_url).train_all()
    assert [(each["status"], each["profiles"]) for each in logged] == [(0, {outcome: 2})]
    assert (
        REGISTRY.get_sample_value("casebank_trainings_total", {"outcome": "learning or its trials are off"})
        == before + 2
    )


async def test_a_training_that_cannot_reach_the_bank_says_that_it_failed(tmp_path: Path):
    with pytest.raises(TrainingFailed, match=r"training\.log says why"):
        await trainings(tmp_path, "postgresql://127.0.0.1:1/nowhere").train_all()


def complaints(log: Path) -> list[str]:
    """Returns the lines by casebank but for the first, which names the database."""
    database, *others = [line for line in log.read_text().splitlines() if "casebank: " in line]
    assert database.startswith("casebank: database: ")
    return others


async def test_what_the_last_training_printed_is_kept_for_its_owner_alone(database_url: str, tmp_path: Path):
    home, log = tmp_path / "home", tmp_path / "home" / "training.log"
    with pytest.raises(TrainingFailed):
        await trainings(home, "postgresql://127.0.0.1:1/nowhere").train_all()
    assert len(complaints(log)) == 1
    assert log.stat().st_mode & 0o777 == 0o600
    await trainings(home, database_url).train_all()
    assert "learning or its trials are off" in log.read_text()
    assert complaints(log) == []


async def test_a_home_that_cannot_be_written_keeps_no_training_back(database_url: str, tmp_path: Path):
    home = tmp_path / "home"
    home.write_text("a file, where no folder can be made")
    with capture_logs() as logged:
        await trainings(home, database_url).train_all()
    assert [each["status"] for each in logged if each["event"] == "training.ended"] == [0]
