"""A backup brings everything back but whom it must not, and refuses what would lose or mix data."""

import asyncio
import json
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import asyncpg
import jwt
import pytest

from app.postgres import EmbeddedPostgres, locks, running, start
from app.postgres.pools import dsn, service_database
from app.settings import Settings
from retrieval.tables.metadata import metadata
from tests.conftest import WAITING
from tests.pages import blocks, python, shell
from tests.policies import stored
from tests.processes import (
    CASEBANK_FORK,
    Service,
    casebank,
    migrated_home,
    new_home,
    ran,
    retain,
    surroundings,
    until,
    worked,
)
from writer.privacy.master_keys import MasterKeys
from writer.rights.erase import digest
from writer.rights.signature import documents, verified
from writer.training import lifecycle

Rows = dict[str, list[str]]

AS_TOLD = blocks("backup.md", "sh")
"""The commands of the page."""
FOLDER = "/backups/2026-11-22"
"""Where the page keeps a backup."""


def refused(home: Path, *words: str, **settings: str) -> str:
    """What the command says in refusing."""
    done = ran(home, *words, **settings)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


async def everything(home: Path) -> Rows:
    """Every row of every table, as text, in an order of its own."""
    with running(home) as server:
        return await rows_of(dsn(server.url()))


async def rows_of(address: str) -> Rows:
    connection = await asyncpg.connect(address)
    rows = {
        name: sorted(row[0] for row in await connection.fetch(f"SELECT t::text FROM {name} AS t"))  # noqa: S608
        for name in sorted(metadata.tables)
    }
    await connection.close()
    return rows


def of(rows: Rows, user: str) -> int:
    return sum(user in row for name in rows for row in rows[name])


@pytest.fixture(scope="module")
def used() -> Iterator[tuple[Path, dict[str, str]]]:
    """A home with a service that Alice and Bob used, and their tokens."""
    with migrated_home() as home:
        yield home, lived_in(home)


@pytest.fixture
def home(used: tuple[Path, dict[str, str]]) -> Iterator[Path]:
    """A copy of it."""
    with new_home() as home:
        subprocess.run(("/bin/cp", "-a", str(used[0]), str(home)), check=True)
        yield home


@pytest.fixture
def tokens(used: tuple[Path, dict[str, str]]) -> dict[str, str]:
    return used[1]


def lived_in(home: Path) -> dict[str, str]:
    """Lets Alice and Bob use a service, and returns their tokens."""
    with Service(home) as service:
        for user in ("alice", "bob"):
            with service.client(user) as client:
                case_id = retain(client, f"{user} waters the garden", tool_traces=[{"tool": "sh", "output": "done"}])
                worked(client, case_id)
                asked = client.post("/v1/retrieve", json={"agent": "a", "query": "water the garden"}).json()
                client.post("/v1/feedback", json={"retrieval_id": asked["retrieval_id"], "thumb": "up"})
        return {user: service.bearer(user)["Authorization"] for user in ("alice", "bob")}


async def learn(home: Path, user: str) -> None:
    """Leaves a policy's weights."""
    with running(home) as server:
        async with service_database(server.url()) as database, database.as_user(user, datetime.now(UTC)) as connection:
            await lifecycle.add(connection, user, "a", stored())


async def test_what_was_backed_up_as_the_page_has_it_comes_back_whole(home: Path, tmp_path: Path):
    backup, restore = AS_TOLD[0].replace(FOLDER, str(tmp_path / "one")).splitlines()
    await learn(home, "alice")
    shell(home, backup)
    before = await everything(home)
    assert all(before[name] for name in ("cases", "case_embeddings", "policies", "audit", "user_keys"))
    with Service(home) as service, service.client("alice") as client:
        worked(client, retain(client, "something that is not in the backup"))
    assert await everything(home) != before
    shell(home, restore)
    assert await everything(home) == before
    with Service(home) as service, service.client("alice") as client:
        (case,) = client.get("/v1/cases").json()["cases"]
        whole = client.get(f"/v1/cases/{case['case_id']}").json()
        assert whole["tool_traces"][0]["output"] == "done"  # the key that sealed it came along


async def test_a_backup_from_before_a_rotation_comes_back_with_the_old_key_beside_the_new(home: Path, tmp_path: Path):
    new = os.urandom(32).hex()
    casebank(home, "backup", str(tmp_path / "one"))
    kept = json.loads((home / "secrets.json").read_text())
    both = {"CASEBANK_MASTER_KEY": new, "CASEBANK_MASTER_KEY_OLD": kept["master_key"]}
    casebank(home, "rotate-key", "--yes", **both)
    casebank(home, "backup", str(tmp_path / "two"), CASEBANK_MASTER_KEY=new)
    restore = ("restore", str(tmp_path / "one"), "--replace")
    assert "CASEBANK_MASTER_KEY_OLD" in refused(home, *restore, CASEBANK_MASTER_KEY=new)
    casebank(home, *restore, **both)
    casebank(home, "rotate-key", "--yes", **both)
    assert await opened(home, new) == "done"
    casebank(home, "restore", str(tmp_path / "two"), "--replace", CASEBANK_MASTER_KEY=new)
    assert await opened(home, new) == "done"


async def opened(home: Path, key: str) -> str:
    """What Alice's tool answered, which is sealed."""
    lines = casebank(home, "export", "--user", "alice", CASEBANK_MASTER_KEY=key).stdout.splitlines()
    (case,) = [row for row in map(json.loads, lines) if row["type"] == "cases"]
    return case["payload"]["tool_traces"][0]["output"]


async def test_who_was_erased_after_the_backup_stays_erased(home: Path, tokens: dict[str, str], tmp_path: Path):
    casebank(home, "backup", str(tmp_path / "one"))
    casebank(home, "purge", "--user", "alice", "--yes")
    assert "casebank purge --scrub" in casebank(home, "restore", str(tmp_path / "one"), "--replace").stdout
    kept, again = documents(casebank(home, "purge", "--receipt", "--user", "alice", "--json").stdout)
    assert verified(kept) == verified(again)
    assert [place["state"] for place in again["places"] if place["place"] == "dead rows"] == ["remains"]
    rows = await everything(home)
    assert of(rows, "alice") == 0
    assert of(rows, "bob") > 0
    with Service(home) as service, service.client("bob") as client:
        assert len(client.get("/v1/cases").json()["cases"]) == 1
        old = {"Authorization": tokens["alice"]}
        assert client.get("/v1/cases", headers=old).status_code == 410


async def test_the_receipt_of_a_user_who_is_not_in_the_backup_is_kept(home: Path, tmp_path: Path):
    casebank(home, "backup", str(tmp_path / "one"))
    await learn(home, "carol")
    receipt = json.loads(casebank(home, "purge", "--user", "carol", "--yes", "--json").stdout)
    casebank(home, "restore", str(tmp_path / "one"), "--replace")
    assert json.loads(casebank(home, "purge", "--receipt", "--user", "carol", "--json").stdout) == receipt


async def test_of_an_erasure_that_the_bank_knows_and_a_later_one_of_a_receipt_the_later_counts(
    home: Path, tmp_path: Path
):
    casebank(home, "purge", "--user", "alice", "--yes")
    await learn(home, "alice")
    casebank(home, "backup", str(tmp_path / "one"))
    elsewhere = {"user_sha256": digest("alice"), "erased_at": datetime.now(UTC).isoformat()}
    (tmp_path / "receipt.json").write_text(json.dumps(elsewhere))
    casebank(home, "restore", str(tmp_path / "one"), "--replace", "--receipt", str(tmp_path / "receipt.json"))
    assert of(await everything(home), "alice") == 0


async def test_what_was_revoked_before_or_after_the_backup_stays_revoked(
    home: Path, tokens: dict[str, str], tmp_path: Path
):
    bare = {user: token.removeprefix("Bearer ") for user, token in tokens.items()}
    bare |= {user: casebank(home, "token", "--user", user).stdout.strip() for user in ("carol", "dave")}
    casebank(home, "token", "revoke", "--user", "carol")
    casebank(home, "backup", str(tmp_path / "one"))
    jti = jwt.decode(bare["alice"], options={"verify_signature": False})["jti"]
    casebank(home, "token", "revoke", "--jti", jti, "--why", "laptop lost")
    casebank(home, "token", "revoke", "--user", "bob")
    before = await what_is_revoked(home)
    assert len(before) == 3
    for _ in range(2):
        casebank(home, "restore", str(tmp_path / "one"), "--replace")
        assert await what_is_revoked(home) == before
    with Service(home) as service, service.client("dave") as client:
        bearers = {user: {"Authorization": f"Bearer {token}"} for user, token in bare.items()}
        found = {user: client.get("/v1/cases", headers=bearers[user]).status_code for user in bearers}
    assert found == {"alice": 401, "bob": 401, "carol": 401, "dave": 200}


async def test_a_restore_keeps_no_reason_of_a_revocation_of_who_was_erased(
    home: Path, tokens: dict[str, str], tmp_path: Path
):
    casebank(home, "backup", str(tmp_path / "one"))
    for user in ("alice", "nobody", "bob"):
        casebank(home, "token", "revoke", "--user", user, "--why", f"{user} left")
    receipts = []
    for user in ("alice", "nobody"):
        receipt = {"user_sha256": digest(user), "erased_at": datetime.now(UTC).isoformat()}
        (tmp_path / user).write_text(json.dumps(receipt))
        receipts += ["--receipt", str(tmp_path / user)]
    casebank(home, "restore", str(tmp_path / "one"), "--replace", *receipts)
    assert [row["why"] for row in await what_is_revoked(home)] == ["", "", "bob left"]


@asynccontextmanager
async def held_restore(home: Path, folder: Path) -> AsyncIterator[tuple[EmbeddedPostgres, subprocess.Popen[str]]]:
    """Yields the server and a restore that waits in its middle until the end of the block."""
    server = start(home)
    locks.leave(home / "postgres", lambda _: None)  # as after a kill: the server is up, and nobody uses it
    connection = await asyncpg.connect(dsn(server.url("postgres")))
    async with connection.transaction():
        await connection.execute("LOCK TABLE pg_database IN SHARE MODE")
        with began(home, "restore", str(folder), "--replace") as restore:
            while not await connection.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"):
                assert restore.poll() is None
                await asyncio.sleep(0.05)
            yield server, restore
    await connection.close()


@contextmanager
def began(home: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """Yields the command under way, and leaves it to its end."""
    command = (CASEBANK_FORK, *words)
    process = subprocess.Popen(
        command, env=surroundings(home), text=True, stderr=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        yield process
    except BaseException:
        process.kill()
        raise


async def test_a_token_that_is_revoked_during_a_restore_stays_revoked(
    home: Path, tokens: dict[str, str], tmp_path: Path
):
    casebank(home, "backup", str(tmp_path / "one"))
    async with held_restore(home, tmp_path / "one") as (_, restore):
        with began(home, "token", "revoke", "--user", "alice") as revoke, suppress(subprocess.TimeoutExpired):
            revoke.wait(2)  # it may wait for the restore
    assert restore.wait() == 0
    assert revoke.wait() == 0
    with Service(home) as service, service.client("bob") as client:
        assert client.get("/v1/cases", headers={"Authorization": tokens["alice"]}).status_code == 401


async def test_a_connection_that_was_opened_during_a_restore_is_told_in_one_line_and_keeps_the_bank(
    home: Path, tmp_path: Path
):
    casebank(home, "backup", str(tmp_path / "one"))
    before = await everything(home)
    async with held_restore(home, tmp_path / "one") as (server, restore):
        stranger = await asyncpg.connect(dsn(server.url()))
    _, said = restore.communicate()
    assert "the bank is in use" in said
    assert "Traceback" not in said
    assert restore.returncode == 1
    stranger.terminate()
    assert await everything(home) == before


async def what_is_revoked(home: Path) -> list[dict[str, Any]]:
    """The revocations, less their numbers, which are given anew."""
    with running(home) as server:
        connection = await asyncpg.connect(dsn(server.url()))
        rows = await connection.fetch("SELECT * FROM token_revocations ORDER BY revoked_at")
        await connection.close()
    return [{name: value for name, value in row.items() if name != "number"} for row in rows]


async def test_on_a_new_machine_receipts_say_who_was_erased(home: Path, tokens: dict[str, str], tmp_path: Path):
    with new_home() as other:
        casebank(home, "backup", str(tmp_path / "one"))
        receipt = tmp_path / "receipt.json"
        receipt.write_text(casebank(home, "purge", "--user", "alice", "--yes", "--json").stdout)
        stranger = {"user_sha256": "0" * 64, "erased_at": "2026-01-01T00:00:00+00:00"}
        (tmp_path / "stranger.json").write_text(json.dumps(stranger))
        other.mkdir()
        (other / "secrets.json").write_bytes((home / "secrets.json").read_bytes())
        (verify,) = blocks("operating.md", "python")
        every_one = (
            tmp_path / "receipts.jsonl"
        )  # as `purge --receipt --json` prints the receipts of a user erased twice
        every_one.write_text(2 * receipt.read_text())
        assert python(home, verify, given=[str(every_one)]).count("unchanged, signed by ") == 2
        files = {FOLDER: "one", "receipt-1.json": receipt.name, "receipt-2.json": "stranger.json"}
        restore = AS_TOLD[1]
        for told, name in files.items():
            assert told in restore
            restore = restore.replace(told, str(tmp_path / name))
        shell(other, restore)
        rows = await everything(other)
        assert of(rows, "alice") == 0
        assert of(rows, "bob") > 0
        assert any("0" * 64 in row for row in rows["erasures"])
        with Service(other) as service, service.client("bob") as client:
            assert client.get("/v1/cases", headers={"Authorization": tokens["alice"]}).status_code == 410


async def test_a_restore_refuses_what_would_lose_or_mix_data(home: Path, tmp_path: Path):
    folder = tmp_path / "one"
    with new_home() as other:
        casebank(home, "backup", str(folder))
        assert "not empty" in refused(home, "backup", str(folder))
        assert "--replace" in refused(home, "restore", str(folder))
        assert "master key" in refused(other, "restore", str(folder))
        assert "no backup" in (told := refused(home, "restore", str(tmp_path / "nowhere")))
        assert "manifest.json: No such file or directory" in told
        bad = tmp_path / "bad.json"
        bad.write_text("{}")
        assert "no receipt" in refused(home, "restore", str(folder), "--replace", "--receipt", str(bad))
        with Service(home):
            assert "stop the service" in refused(home, "restore", str(folder), "--replace")
        before = await everything(home)
        with (folder / "casebank.dump").open("ab") as dump:
            dump.write(b"x")
        assert "sha256" in refused(home, "restore", str(folder), "--replace")
        assert await everything(home) == before


async def test_a_restore_refused_late_leaves_no_row_of_the_backup(home: Path, tmp_path: Path):
    with new_home() as other:
        casebank(home, "backup", str(tmp_path / "one"))
        casebank(other, "migrate")
        manifest = json.loads((tmp_path / "one" / "manifest.json").read_text())
        key = MasterKeys.of(Settings(home=other).master_key_bytes).wanted
        (tmp_path / "one" / "manifest.json").write_text(json.dumps(manifest | {"master_key": key}))
        assert "master key" in refused(other, "restore", str(tmp_path / "one"))
        with running(other) as server:
            connection = await asyncpg.connect(dsn(server.url()))
            names = await connection.fetch("SELECT datname FROM pg_database WHERE datname LIKE 'casebank%'")
            await connection.close()
    assert [row["datname"] for row in names] == ["casebank"]


def test_a_restore_refuses_a_bank_whose_service_rests(home: Path, tmp_path: Path):
    casebank(home, "backup", str(tmp_path / "one"))
    with Service(home, CASEBANK_IDLE_S="0.5") as service:
        until(lambda: "rest.began" in service.log.read_text())
        assert "stop the service" in refused(home, "restore", str(tmp_path / "one"), "--replace")


def test_where_there_is_no_bank_there_is_nothing_to_back_up(tmp_path: Path):
    with new_home() as home:
        assert "no bank" in refused(home, "backup", str(tmp_path / "one"))
    assert not (tmp_path / "one").exists()


async def test_a_backup_that_broke_off_leaves_nothing_and_may_be_repeated(home: Path, tmp_path: Path):
    with running(home) as server:
        connection = await asyncpg.connect(dsn(server.url()))
        async with connection.transaction():
            await connection.execute("LOCK TABLE cases")
            with began(home, "backup", str(tmp_path / "one")) as backup:
                while not await connection.fetchval(WAITING):
                    assert backup.poll() is None
                    await asyncio.sleep(0.05)
            await connection.execute("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE NOT granted")
            assert "pg_dump failed" in backup.communicate()[1]
        await connection.close()
    assert not list((tmp_path / "one").iterdir())
    casebank(home, "backup", str(tmp_path / "one"))


def test_a_backup_is_its_owners_alone_and_holds_no_key(home: Path, tmp_path: Path):
    folder = tmp_path / "one"
    casebank(home, "backup", str(folder))
    secrets: dict[str, Any] = json.loads((home / "secrets.json").read_text())
    assert folder.stat().st_mode & 0o077 == 0
    for file in folder.iterdir():
        assert file.stat().st_mode & 0o077 == 0
        assert secrets["master_key"].encode() not in file.read_bytes()


@pytest.mark.parametrize("words", [("backup",), ("restore", "--replace")], ids=str)
def test_a_database_of_ones_own_is_left_to_its_own_tools(tmp_path: Path, words: tuple[str, ...]):
    said = refused(tmp_path, words[0], str(tmp_path / "b"), *words[1:], DATABASE_URL="postgresql://nowhere/x")
    assert "DATABASE_URL is set" in said
