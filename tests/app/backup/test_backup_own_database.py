"""The page on backups of a database of one's own: each of its commands runs, and does what the page says."""

import asyncio
import json
import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import asyncpg
import pytest
from sqlalchemy.engine import make_url

from app.postgres import EmbeddedPostgres, program, running
from app.postgres.migrate import migrate
from app.postgres.pools import service_database
from tests.app.backup.test_backup import of, rows_of
from tests.conftest import new_database
from tests.processes import CASEBANK, ROOT, new_home, surroundings
from writer.author import Author
from writer.privacy.keys import Keyring
from writer.retain.retain import retain
from writer.rights.erase import erase
from writer.run import FinishedRun

PAGE = (ROOT / "docs" / "backup.md").read_text().partition("## A database of your own")[2]
LOGICAL, BASE, RECOVER, WAIT, AGAIN = [part.partition("```")[0] for part in PAGE.split("```sh\n")[1:]]


def plain(url: str) -> str:
    return str(make_url(url).set(drivername="postgresql"))


async def shell(home: Path, commands: str, **variables: str) -> str:
    """Runs commands of the page, and returns what they said."""
    path = f"{program('pg_dump').parent}:{Path(CASEBANK).parent}:{os.environ['PATH']}"
    done = await asyncio.to_thread(
        subprocess.run,
        ("/bin/bash", "-euc", commands),
        env=surroundings(home, PATH=path, **variables),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


async def keep(url: str, keyring: Keyring, *users: str) -> None:
    async with service_database(url) as database:
        for user in users:
            run = FinishedRun(agent="a", task=f"water the garden of {user}", outcome="success")
            await retain(database, keyring, run, Author(user, user, datetime.now(UTC)))


async def purge(url: str, user: str, file: Path) -> None:
    """Erases the user, and leaves the receipt in the file."""
    async with service_database(url) as database:
        receipt = await erase(database, user)
    await asyncio.to_thread(_write, file, json.dumps(receipt.as_dict()))


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)


async def asked(url: str, statement: str) -> object:
    owner = await asyncpg.connect(plain(url))
    try:
        return await owner.fetchval(statement)
    finally:
        await owner.close()


@pytest.fixture
def keyring() -> Keyring:
    return Keyring(os.urandom(32))


async def test_a_dump_brings_every_row_back_and_receipts_keep_the_erased_erased(
    tmp_path: Path, postgres: EmbeddedPostgres, keyring: Keyring
):
    old, new = [plain(await new_database(postgres)) for _ in range(2)]
    receipts = tmp_path / "receipts"
    urls = {"DATABASE_URL": old, "NEW_DATABASE_URL": new, "BACKUP": str(tmp_path), "RECEIPTS": str(receipts)}
    await keep(old, keyring, "alice", "bob")
    await shell(tmp_path, LOGICAL, **urls)
    before, after = await rows_of(old), await rows_of(new)
    assert of(before, "alice") > 0
    assert after == before
    await purge(old, "alice", receipts / "1.json")
    assert "1 users erased again" in await shell(tmp_path, AGAIN, **urls)
    rows = await rows_of(new)
    assert (of(rows, "alice"), of(rows, "bob")) == (0, of(before, "bob"))
    assert len(rows["erasures"]) == 1
    assert "0 users erased again" in await shell(tmp_path, AGAIN, **urls)


async def test_a_login_that_row_level_security_binds_gets_an_error_and_no_dump_that_lacks_rows(
    tmp_path: Path, postgres: EmbeddedPostgres, keyring: Keyring
):
    url = await new_database(postgres)
    await keep(url, keyring, "alice")
    await asked(url, "CREATE ROLE dumper LOGIN")
    await asked(url, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO dumper")
    urls = {"DATABASE_URL": plain(url).replace("postgres@", "dumper@"), "BACKUP": str(tmp_path)}
    with pytest.raises(AssertionError, match=r"row-level security|lack SELECT privilege"):
        await shell(tmp_path, LOGICAL.splitlines()[0], **urls)


@pytest.mark.timeout(300)
async def test_recovery_to_a_point_in_time_goes_back_to_it_and_receipts_keep_the_erased_erased(keyring: Keyring):
    with new_home() as home, new_home() as other:
        archive = home / "archive"
        places = {"BACKUP": str(home), "ARCHIVE": str(archive), "RECOVERED": str(other / "postgres")}
        with running(home) as server:
            archive.mkdir()
            archive.chmod(0o777)
            await asked(server.url(), "ALTER SYSTEM SET archive_mode = 'on'")
            await asked(server.url(), f"ALTER SYSTEM SET archive_command = 'cp %p {archive}/%f'")
        with running(home) as server:
            url = server.url()
            await migrate(url)
            await keep(url, keyring, "alice", "bob")
            await shell(home, BASE, SERVER_URL=plain(server.url("postgres")), **places)
            await keep(url, keyring, "carol")
            before, moment = await rows_of(plain(url)), str(await asked(url, "SELECT clock_timestamp()"))
            await purge(url, "alice", home / "receipts" / "1.json")
            await keep(url, keyring, "dave")
            await asked(url, "SELECT pg_switch_wal()")
        other.mkdir()
        slowly = RECOVER.replace("'cp", "'sleep 1 && cp")  # so that it answers before it has recovered
        await shell(home, slowly, MOMENT=moment, **places)
        if os.geteuid() == 0:
            await shell(home, f"chown -R --reference={home / 'postgres'} {other / 'postgres'}")
        with running(other) as server:
            url = plain(server.url())
            await shell(home, WAIT, NEW_DATABASE_URL=url)
            assert await rows_of(url) == before
            await shell(home, AGAIN, NEW_DATABASE_URL=url, RECEIPTS=str(home / "receipts"))
            rows = await rows_of(url)
        assert [of(rows, user) > 0 for user in ("alice", "bob", "carol", "dave")] == [False, True, True, False]
