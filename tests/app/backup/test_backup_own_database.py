"""The page on backups of a database of one's own: each of its commands runs, and does what the page says."""

import asyncio
import json
import os
import re
from datetime import UTC, datetime
from pathlib import Path

import asyncpg
import pytest
from sqlalchemy.engine import make_url

from app.postgres import EmbeddedPostgres, running
from app.postgres.pools import service_database
from tests import pages
from tests.app.backup.test_backup import of, rows_of
from tests.pages import blocks
from tests.paths import ROOT
from tests.processes import new_home
from writer.author import Author
from writer.privacy.keys import Keyring
from writer.retain.retain import retain
from writer.rights.erase import erase
from writer.run import FinishedRun

PAGE = (ROOT / "docs" / "backup.md").read_text().partition("## A database of your own")[2]
LOGIN, LOGICAL, BASE, RECOVER, WAIT, AGAIN = [part.partition("```")[0] for part in PAGE.split("```sh\n")[1:]]
ROLES, SCHEMA, *_ = blocks("deploy.md", "sh")
PASSWORDS = {f"{login}_PASSWORD": login.lower() * 8 for login in ("OWNER", "SERVICE", "BACKUP")}


def plain(url: str) -> str:
    return str(make_url(url).set(drivername="postgresql"))


async def shell(home: Path, commands: str, **variables: str) -> str:
    """Runs commands of the page, and returns what they said."""
    return await asyncio.to_thread(pages.shell, home, commands, **variables)


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


KEY = os.urandom(32)
"""The installation's master key."""


@pytest.fixture
def keyring() -> Keyring:
    return Keyring(KEY)


def logins(server: EmbeddedPostgres, database: str) -> dict[str, str]:
    """Returns the URLs of the page's logins at a database."""
    roles = {"ADMIN": "postgres", "OWNER": "memory_owner", "SERVICE": "memory_service", "BACKUP": "memory_backup"}
    return {f"{login}_URL": plain(server.url(database, role)) for login, role in roles.items()}


async def deployed(home: Path, server: EmbeddedPostgres, database: str) -> dict[str, str]:
    """Makes the database by the commands of the page on deploying, and returns the URLs of its logins."""
    urls = logins(server, database)
    given = {**urls, **PASSWORDS, "ADMIN_URL": plain(server.url("postgres"))}
    known = await asked(given["ADMIN_URL"], "SELECT count(*) FROM pg_roles WHERE rolname = 'memory_owner'")
    roles = ROLES.replace("DATABASE memory ", f"DATABASE {database} ").replace("connect memory", f"connect {database}")
    await shell(home, re.sub("CREATE ROLE.*\n", "", roles) if known else roles, **given)
    await shell(home, SCHEMA, **given)
    return urls


@pytest.mark.timeout(300)
async def test_each_command_of_a_dump_and_its_restore_runs_as_the_login_that_the_page_says(keyring: Keyring):
    with new_home() as home, running(home) as server:
        receipts, folder = home / "receipts", home / "backup"
        old, new = [await deployed(home, server, name) for name in ("memory", "memory2")]
        await shell(home, LOGIN, ADMIN_URL=plain(server.url("postgres")), **PASSWORDS)
        folder.mkdir()
        folder.chmod(0o777)
        urls = {**old, **{f"NEW_{name}": url for name, url in new.items()}}
        urls |= {"BACKUP": str(folder), "RECEIPTS": str(receipts), "CASEBANK_MASTER_KEY": KEY.hex()}
        await keep(old["SERVICE_URL"], keyring, "alice", "bob")
        await shell(home, LOGICAL, **urls)
        before, after = await rows_of(old["ADMIN_URL"]), await rows_of(new["ADMIN_URL"])
        assert of(before, "alice") > 0
        assert after == before
        await purge(old["SERVICE_URL"], "alice", receipts / "1.json")
        assert "1 users erased again" in await shell(home, AGAIN, **urls)
        rows = await rows_of(new["ADMIN_URL"])
        assert (of(rows, "alice"), of(rows, "bob")) == (0, of(before, "bob"))
        assert len(rows["erasures"]) == 1
        assert "public_key" in rows["erasures"][0]
        assert "0 users erased again" in await shell(home, AGAIN, **urls)
        with pytest.raises(AssertionError, match="must be owner of extension vector"):
            await shell(home, LOGICAL.splitlines()[2], **urls | {"NEW_ADMIN_URL": new["OWNER_URL"]})
        for login in ("OWNER", "SERVICE"):  # the table's reasons
            with pytest.raises(AssertionError, match=r"row-level security|lack SELECT privilege|permission denied"):
                await shell(home, LOGICAL.splitlines()[0], **urls | {"BACKUP_URL": old[f"{login}_URL"]})
        with pytest.raises(AssertionError, match="casebank: the login of DATABASE_URL does not own the tables"):
            await shell(home, AGAIN, **urls | {"NEW_OWNER_URL": new["SERVICE_URL"]})
        owner = await asked(new["ADMIN_URL"], "SELECT tableowner FROM pg_tables WHERE tablename = 'cases'")
        assert owner == "memory_owner"


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
            deployment = await deployed(home, server, "memory")
            url = deployment["ADMIN_URL"]
            await shell(home, LOGIN, ADMIN_URL=url, **PASSWORDS)
            await keep(url, keyring, "alice", "bob")
            await shell(home, BASE, BACKUP_URL=deployment["BACKUP_URL"], **places)
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
            deployment = logins(server, "memory")
            url, owner = deployment["ADMIN_URL"], deployment["OWNER_URL"]
            await shell(home, WAIT, NEW_SERVICE_URL=deployment["SERVICE_URL"])
            assert await rows_of(url) == before
            given = {"NEW_OWNER_URL": owner, "CASEBANK_MASTER_KEY": KEY.hex()}
            await shell(home, AGAIN, RECEIPTS=str(home / "receipts"), **given)
            rows = await rows_of(url)
        assert [of(rows, user) > 0 for user in ("alice", "bob", "carol", "dave")] == [False, True, True, False]
