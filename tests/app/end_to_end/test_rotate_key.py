"""The operator's way from one master key to the next: both everywhere, rotate, the old one nowhere."""

import asyncio
import json
import os
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import pytest
from sqlalchemy import func, select

from app.postgres import EmbeddedPostgres
from app.postgres.pools import service_database
from retrieval.database.database import Database
from retrieval.tables.keys import master_keys
from tests.app.end_to_end.test_master_key import refused
from tests.conftest import new_database
from tests.processes import (
    CASEBANK_FORK,
    ROOT,
    Service,
    casebank,
    get,
    migrated_home,
    retain,
    started,
    surroundings,
    worked,
)
from writer.privacy.keys import Keyring
from writer.privacy.master_keys import agree
from writer.privacy.words import Words

OLD, NEW = os.urandom(32).hex(), os.urandom(32).hex()
ROTATE = ("rotate-key", "--yes", "--json")
USERS, KILLS = 120, 3


@pytest.fixture
async def url(postgres: EmbeddedPostgres) -> str:
    return await new_database(postgres)


@pytest.fixture
def home() -> Iterator[Path]:
    with migrated_home() as home:
        yield home


@pytest.fixture
def nowhere() -> Iterator[IO[bytes]]:
    with Path(os.devnull).open("wb") as file:
        yield file


def fill(service: Service, users: list[str]) -> dict[str, str]:
    """Lets each user retain a run, and returns its case."""
    made = {}
    for user in users:
        with service.client(user) as client:
            made[user] = retain(client, "water the garden", tool_traces=[{"tool": "sh", "output": f"{user} is done"}])
    return made


def readable(service: Service, made: dict[str, str]) -> bool:
    """Whether every user's sealed part opens."""
    return all(output(service, user, case_id) == f"{user} is done" for user, case_id in made.items())


def output(service: Service, user: str, case_id: str) -> str:
    with service.client(user) as client:
        return client.get(f"/v1/cases/{case_id}").json()["tool_traces"][0]["output"]


@pytest.mark.timeout(300)
def test_the_operators_sequence_serves_every_user_all_along(url: str, home: Path):
    first = {"DATABASE_URL": url, "CASEBANK_MASTER_KEY": OLD}
    both = {"DATABASE_URL": url, "CASEBANK_MASTER_KEY": NEW, "CASEBANK_MASTER_KEY_OLD": OLD}
    last = {"DATABASE_URL": url, "CASEBANK_MASTER_KEY": NEW}
    with Service(home, **first) as service:
        made = fill(service, ["alice", "bob"])
    # its worker would hand dave's case back for as long as another process may need to get the new key
    untold = Service(home, **first, CASEBANK_WORKER_IN_SERVICE="false")
    with untold as told_nothing, Service(home, **both) as service:
        made |= fill(service, ["carol"])
        assert readable(told_nothing, made)  # nothing is wrapped by the new key before it is told to
        receipt = json.loads(casebank(home, *ROTATE, **both).stdout)
        assert (receipt["users_rewrapped"], receipt["users_left"]) == (3, 0)
        made |= fill(service, ["dave"])
        assert readable(service, made)
        ready = get(f"{told_nothing.url}/readyz")
        assert ready.status_code == 503
        assert receipt["new_master_key"] in ready.json()["detail"]
        with told_nothing.client("erin") as client:
            run = {"agent": "a", "task": "water the garden", "outcome": "success"}
            answer = client.post("/v1/retain", json=run)
        assert (answer.status_code, answer.json()["type"]) == (503, "urn:casebank:problem:master-key-mismatch")
        assert readable(service, made)
    with Service(home, **last) as service, service.client("dave") as client:
        assert readable(service, made)
        worked(client, made["dave"])
    assert receipt["new_master_key"] in refused(home, "serve", "--port", "0", **first)
    assert json.loads(casebank(home, *ROTATE, **last).stdout) == receipt


@pytest.mark.timeout(300)
async def test_killed_again_and_again_it_loses_nobody_and_ends_with_the_whole_count(
    url: str, home: Path, nowhere: IO[bytes]
):
    users = [f"user-{number:03}" for number in range(USERS)]
    old, new = Keyring(bytes.fromhex(OLD)), Keyring(bytes.fromhex(NEW))
    both = {"DATABASE_URL": url, "CASEBANK_MASTER_KEY": NEW, "CASEBANK_MASTER_KEY_OLD": OLD}
    async with service_database(url) as database:
        async with database.as_worker() as connection:
            await agree(connection, old.masters)
        made = {user: await key_of(database, user, old) for user in users}
        async with database.as_eraser(users[-1]):  # for whom it waits, so that it cannot end before it is killed
            for killed in range(1, KILLS + 1):
                process = started(ROTATE, surroundings(home, **both), nowhere, nowhere)
                while await rewrapped(database) < USERS * killed // (KILLS + 1):  # noqa: ASYNC110 - it tells nobody
                    await asyncio.sleep(0.002)
                process.kill()
                process.wait()
        assert await rewrapped(database) < USERS
        receipt = json.loads((await asyncio.to_thread(casebank, home, *ROTATE, **both)).stdout)
        assert (receipt["users_rewrapped"], receipt["users_left"]) == (USERS, 0)
        assert {user: await key_of(database, user, new) for user in users} == made


async def key_of(database: Database, user: str, keyring: Keyring) -> Words:
    async with database.as_user(user, datetime.now(UTC)) as connection:
        return await keyring.find_or_make(connection, user)


async def rewrapped(database: Database) -> int:
    async with database.as_worker() as connection:
        return await connection.scalar(select(func.sum(master_keys.c.rewrapped))) or 0


@pytest.mark.timeout(300)
def test_a_home_with_its_own_postgres_rotates_by_its_secrets_file(home: Path):
    with Service(home) as service:
        made = fill(service, ["alice", "bob"])
    kept = json.loads((home / "secrets.json").read_text())
    edited = kept | {"master_key": NEW, "master_key_old": kept["master_key"]}
    (home / "secrets.json").write_text(json.dumps(edited))
    with Service(home) as service:
        receipt = json.loads(casebank(home, *ROTATE).stdout)
        assert receipt["users_rewrapped"] == 2
        assert readable(service, made)
    del edited["master_key_old"]
    (home / "secrets.json").write_text(json.dumps(edited))
    with Service(home) as service:
        assert readable(service, made)


def test_it_asks_first_and_says_where_there_is_nothing_to_do(url: str, home: Path):
    settings = {"DATABASE_URL": url, "CASEBANK_MASTER_KEY": OLD}
    assert "CASEBANK_MASTER_KEY_OLD" in refused(home, "rotate-key", "--yes", **settings)
    done = subprocess.run(
        (CASEBANK_FORK, "rotate-key"),
        input="n\n",
        env=surroundings(home, **settings),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "hold both keys" in done.stderr) == (1, True)
