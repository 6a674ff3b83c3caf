"""A process with another master key than the database's does not start and says why, whatever it is for."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.postgres import EmbeddedPostgres
from app.postgres.pools import service_database
from tests.conftest import new_database
from tests.processes import Service, casebank, new_home, ran
from writer.privacy.master_keys import MasterKeys, agree

OURS, THEIRS = os.urandom(32).hex(), os.urandom(32).hex()
SERVE = ("serve", "--port", "0")
COMMANDS = [
    SERVE,
    ("worker",),
    ("train",),
    ("export", "--user", "alice"),
    ("prune",),
    ("reembed",),
    ("rotate-key", "--yes"),
]


@pytest.fixture
async def url(postgres: EmbeddedPostgres) -> str:
    return await new_database(postgres)


@pytest.fixture
def home() -> Iterator[Path]:
    with new_home() as home:
        yield home


def refused(home: Path, *words: str, **settings: str) -> str:
    """What the command says that does not run."""
    done = ran(home, *words, **settings)
    assert done.returncode != 0, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    return done.stderr


@pytest.fixture(scope="module")
async def kept_with_ours(postgres: EmbeddedPostgres) -> str:
    """URL of a database that a process with our key began."""
    url = await new_database(postgres)
    async with service_database(url) as database, database.as_worker() as connection:
        await agree(connection, MasterKeys.of(bytes.fromhex(OURS)))
    return url


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_process_starts_with_another_key_than_the_databases(
    kept_with_ours: str, home: Path, command: tuple[str, ...]
):
    said = refused(home, *command, DATABASE_URL=kept_with_ours, CASEBANK_MASTER_KEY=THEIRS)
    assert "this database is kept with the master key whose fingerprint is" in said
    assert THEIRS not in said


@pytest.mark.timeout(300)
def test_of_two_services_that_come_at_once_with_other_keys_one_serves(url: str, home: Path):
    services = [Service(home, DATABASE_URL=url, CASEBANK_MASTER_KEY=key) for key in (OURS, THEIRS)]
    for service in services:
        service.start()
    try:
        while all(service.process.poll() is None for service in services):
            time.sleep(0.1)
        loser, winner = sorted(services, key=lambda service: service.process.poll() is None)
        assert loser.process.poll() != 0
        assert "CASEBANK_MASTER_KEY" in loser.log.read_text()
        assert "Traceback" not in loser.log.read_text()
        winner.ready()
    finally:
        for service in services:
            service.stop()


@pytest.mark.parametrize("command", COMMANDS[:3], ids=" ".join)
def test_with_an_external_database_no_key_is_ever_made_up(url: str, home: Path, command: tuple[str, ...]):
    casebank(home, "token", "--user", "alice", DATABASE_URL=url)  # which makes up a secret of its own
    said = refused(home, *command, DATABASE_URL=url)
    assert "set CASEBANK_MASTER_KEY" in said
    assert "openssl rand -hex 32" in said
    assert "master_key" not in json.loads((home / "secrets.json").read_text())


@pytest.mark.parametrize("key", ["hunter2", "0" * 63, "g" * 64, "0" * 62 + " 1"])
def test_what_is_no_key_is_refused_and_not_repeated(url: str, home: Path, key: str):
    said = refused(home, "prune", DATABASE_URL=url, CASEBANK_MASTER_KEY=key)
    assert "CASEBANK_MASTER_KEY must be 64 hex digits" in said
    assert key not in said


def test_the_key_that_an_older_version_made_up_for_an_external_database_is_used_on(url: str, home: Path):
    home.mkdir()
    (home / "secrets.json").write_text(json.dumps({"jwt_secret": "j" * 48, "master_key": OURS}))
    casebank(home, "prune", DATABASE_URL=url)
    refused(home, "prune", DATABASE_URL=url, CASEBANK_MASTER_KEY=THEIRS)
