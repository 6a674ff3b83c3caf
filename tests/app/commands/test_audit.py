"""``casebank audit`` and ``casebank token revoke``: what an operator sees, on the bank of the settings."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest
from sqlalchemy import insert
from typer.testing import CliRunner, Result

from app.cli import cli
from app.postgres.pools import dsn, service_database
from app.runtime import signed
from app.settings import Settings
from retrieval.tables.audit import erasures
from retrieval.tables.metadata import USER_TABLES
from tests.writer.conftest import AGENT
from writer.audit import Change, note
from writer.privacy.keys import Keyring
from writer.privacy.master_keys import MasterKeys
from writer.rights.erase import digest, erase

KEY = "5a" * 32
"""The master key of the module's database."""

SECRET = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5"


@pytest.fixture
def settings(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    for name, value in {
        "CASEBANK_HOME": str(tmp_path),
        "DATABASE_URL": database_url,
        "CASEBANK_MASTER_KEY": KEY,
    }.items():
        monkeypatch.setenv(name, value)
    return Settings(home=tmp_path, database_url=database_url, master_key=KEY)


async def casebank(*words: str, given: str = "") -> Result:
    return await asyncio.to_thread(CliRunner().invoke, cli, words, given, {"COLUMNS": "300"})


@pytest.fixture
async def user(settings: Settings) -> str:
    """Somebody with five entries in the audit."""
    name = f"user-{uuid4()}"
    async with service_database(str(settings.database_url)) as plain:
        database, _ = await signed(plain, MasterKeys.of(settings.master_key_bytes))
        async with database.as_user(name, datetime.now(UTC)) as connection:
            await note(connection, *(Change.of((name, AGENT), name, "do", number=number) for number in range(5)))
    return name


async def forge(url: str, statement: str, *values: object) -> None:
    connection = await asyncpg.connect(dsn(url))
    await connection.execute("SET session_replication_role = replica")
    await connection.execute(statement, *values)
    await connection.close()


async def test_a_chain_that_holds_is_said_to_hold(settings: Settings, user: str):
    done = await casebank("audit", "verify", "--user", "-", given=f"{user}\n")
    assert done.exit_code == 0, done.output
    assert "ok" in done.stdout


async def test_the_first_bad_entry_is_named_and_the_status_is_1(settings: Settings, user: str):
    await forge(
        str(settings.database_url), "DELETE FROM audit WHERE user_sub = $1 AND payload->>'number' IN ('2', '4')", user
    )
    done = await casebank("audit", "verify", "--user", user, "--json")
    assert done.exit_code == 1
    found = json.loads(done.stdout)
    assert (found["fault"]["seq"], found["fault"]["what"]) == (3, "the entry was deleted")


async def test_all_are_looked_at_with_the_erasures(settings: Settings, user: str):
    url = str(settings.database_url)
    async with service_database(url) as database:
        receipt = await erase(database, f"gone-{user}")
    lines = (await casebank("audit", "verify", "--all", "--json")).stdout.splitlines()
    assert user in {json.loads(line).get("user") for line in lines}
    assert json.loads(lines[-1])["fault"] is None
    await forge(url, "DELETE FROM erasures WHERE user_sub = $1", receipt.user_digest)
    done = await casebank("audit", "verify", "--all", "--json")
    assert done.exit_code == 1
    assert "deleted or changed" in json.loads(done.stdout.splitlines()[-1])["fault"]["what"]
    await forge(
        url,
        "INSERT INTO erasures (user_sub, erased_at, receipt) VALUES ($1, $2, '{}')",
        receipt.user_digest,
        receipt.erased_at,
    )


@pytest.mark.parametrize(
    ("edit", "what"),
    [
        ("UPDATE erasures SET erased_at = '2020-01-01Z' WHERE user_sub = $1", "deleted or changed"),
        ("DELETE FROM erasure_links WHERE user_sha256 = $1", "missing|cut"),
        ("UPDATE erasure_links SET erased_at = now() WHERE user_sha256 = $1", "changed"),
        ("UPDATE erasure_links SET erased_at = 'infinity' WHERE user_sha256 = $1", "changed"),
        ("UPDATE erasures SET erased_at = '0044-03-15 BC' WHERE user_sub = $1", "deleted or changed"),
        ("INSERT INTO erasures VALUES ($1, now(), '{}')", "put in"),
    ],
)
async def test_what_is_done_to_the_tombstones_is_found(settings: Settings, edit: str, what: str):
    url = str(settings.database_url)
    async with service_database(url) as database:
        for _ in range(2):
            receipt = await erase(database, f"gone-{uuid4()}")
    before = "CREATE TABLE IF NOT EXISTS {0}_before AS SELECT * FROM {0}"
    for table in ("erasures", "erasure_links"):
        await forge(url, before.format(table))
    await forge(url, edit, receipt.user_digest)
    done = await casebank("audit", "verify", "--all", "--json")
    for table in ("erasures", "erasure_links"):  # as it was, for the next
        await forge(url, f"DELETE FROM {table}")  # noqa: S608 - our own words
        await forge(url, f"INSERT INTO {table} SELECT * FROM {table}_before")  # noqa: S608 - our own words
        await forge(url, f"DROP TABLE {table}_before")
    assert done.exit_code == 1
    fault = json.loads(done.stdout.splitlines()[-1])["fault"]["what"]
    assert any(word in fault for word in what.split("|")), fault


async def test_old_entries_go_and_the_rest_is_verified(settings: Settings, user: str):
    done = await casebank("audit", "prune", "--keep-days", "1", "--user", user)
    assert (done.exit_code, done.stdout) == (0, "0 entries deleted\n")


@pytest.mark.parametrize("command", [("verify", "--json"), ("prune", "--keep-days", "1")])
@pytest.mark.parametrize("everyone", [True, False])
async def test_only_of_all_users_one_who_is_erased_after_the_list_was_read_is_passed_over(
    settings: Settings, user: str, command: tuple[str, ...], *, everyone: bool
):
    later = datetime.now(UTC) + timedelta(hours=1)  # than the command begins to read the user's chain
    async with service_database(str(settings.database_url)) as database, database.as_eraser(user) as connection:
        await connection.execute(insert(erasures).values(user_sub=digest(user), erased_at=later, receipt={}))
    done = await casebank("audit", *command, *(("--all",) if everyone else ("--user", user)))
    assert ("erased" in done.stderr) is not everyone
    assert ('"erasures"' in done.stdout or "entries deleted" in done.stdout) is everyone
    assert user not in done.stdout


async def test_a_name_without_entries_is_doubted(settings: Settings, user: str):
    doubt = "this user has no entry: is the name right?"
    assert doubt in (await casebank("audit", "verify", "--user", f"{user}x", "--json")).stderr
    assert doubt not in (await casebank("audit", "verify", "--user", user)).stderr
    await forge(str(settings.database_url), "DELETE FROM audit_heads WHERE user_sub = $1", user)
    changed = await casebank("audit", "verify", "--user", user)
    assert (changed.exit_code, doubt in changed.stderr) == (1, False)


@pytest.mark.parametrize("command", [("audit", "prune", "--keep-days", "1"), ("requeue",)])
async def test_a_name_of_which_the_bank_knows_nothing_is_doubted(
    settings: Settings, user: str, command: tuple[str, ...]
):
    doubt = "this user has no rows: is the name right?"
    assert doubt in (await casebank(*command, "--user", f"{user}x")).stderr
    assert doubt not in (await casebank(*command, "--user", user)).stderr
    assert (await casebank(*command, "--user", "")).exit_code == 2


async def test_a_digest_of_an_erased_name_counts_in_any_letter_case(settings: Settings, user: str):
    assert (await casebank("purge", "--user", user, "--yes")).exit_code == 0
    receipts = [
        await casebank("purge", "--receipt", "--json", "--digest", form)
        for form in (digest(user), digest(user).upper())
    ]
    assert receipts[0].stdout == receipts[1].stdout
    assert json.loads(receipts[1].stdout)["user_sha256"] == digest(user)


async def test_either_one_user_or_all(settings: Settings):
    assert (await casebank("audit", "verify")).exit_code == 2
    assert (await casebank("audit", "verify", "--all", "--user", "ada")).exit_code == 2


async def test_a_revocation_is_listed_and_in_the_audit_of_its_subject(settings: Settings, user: str):
    token = (await casebank("token", "--user", user)).stdout.strip()
    done = await casebank("token", "revoke", "--token", "--why", "laptop lost", given=f"{token}\n")
    assert done.exit_code == 0, done.output
    assert (await casebank("token", "revoke", "--user", user, "--why", f"left us with {SECRET}")).exit_code == 0
    listed = (await casebank("token", "list-revoked")).stdout
    assert "laptop lost" in listed
    assert "left us" in listed
    assert SECRET not in listed
    assert token not in listed
    verified = json.loads((await casebank("audit", "verify", "--user", user, "--json")).stdout)
    assert (verified["entries"], verified["fault"]) == (7, None)


async def test_a_revocation_of_a_name_that_may_be_misspelt_warns_of_it(settings: Settings, user: str):
    doubt = "this user has no rows: is the name right?"
    done = await casebank("token", "revoke", "--user", f"{user}x")
    assert (done.exit_code, doubt in done.stderr) == (0, True)
    assert doubt not in (await casebank("token", "revoke", "--user", user)).stderr
    assert (await casebank("purge", "--user", user, "--yes")).exit_code == 0
    assert doubt not in (await casebank("token", "revoke", "--user", user)).stderr


async def test_a_revocation_makes_no_row_of_an_erased_user_and_keeps_no_reason(settings: Settings, user: str):
    token = (await casebank("token", "--user", user)).stdout.strip()
    assert (await casebank("token", "revoke", "--user", user, "--why", f"{user} left")).exit_code == 0
    assert (await casebank("purge", "--user", user, "--yes")).exit_code == 0
    assert (await casebank("token", "revoke", "--user", user, "--why", f"{user} left")).exit_code == 0
    done = await casebank("token", "revoke", "--token", "--why", f"{user} left", given=f"{token}\n")
    assert done.exit_code == 0, done.output
    listed = (await casebank("token", "list-revoked")).stdout
    assert (digest(user)[:16] in listed, user in listed) == (True, False)
    owner = await asyncpg.connect(dsn(str(settings.database_url)))
    for table in USER_TABLES:
        assert await owner.fetch(f"SELECT 1 FROM {table.name} WHERE user_sub = $1", user) == []  # noqa: S608
    await owner.close()


async def test_a_revocation_is_in_the_audit_of_a_user_who_began_anew(settings: Settings, user: str):
    assert (await casebank("purge", "--user", user, "--yes")).exit_code == 0
    async with (
        service_database(str(settings.database_url)) as database,
        database.as_user(user, datetime.now(UTC)) as connection,
    ):
        await Keyring(settings.master_key_bytes).find_or_make(connection, user)
    assert (await casebank("token", "revoke", "--user", user, "--why", "laptop lost")).exit_code == 0
    verified = json.loads((await casebank("audit", "verify", "--user", user, "--json")).stdout)
    assert (verified["entries"], verified["fault"]) == (1, None)
    assert "laptop lost" in (await casebank("token", "list-revoked")).stdout


@pytest.mark.parametrize("days", ["36526", "99999999999"])
async def test_entries_are_kept_for_a_hundred_years_at_most(settings: Settings, days: str):
    done = await casebank("audit", "prune", "--keep-days", days, "--all")
    assert (done.exit_code, "36525" in done.stderr) == (2, True)


@pytest.mark.parametrize("empty", ["--jti", "--user"])
async def test_an_empty_id_or_name_revokes_nothing(settings: Settings, empty: str):
    before = (await casebank("token", "list-revoked")).stdout
    done = await casebank("token", "revoke", empty, "")
    assert (done.exit_code, empty in done.stderr) == (2, True)
    assert (await casebank("token", "list-revoked")).stdout == before


@pytest.mark.parametrize("words", [(), ("--user", "ada", "--jti", "x"), ("--token",)])
async def test_what_is_to_be_revoked_must_be_clear(settings: Settings, words: tuple[str, ...]):
    assert (await casebank("token", "revoke", *words, given="no token\n")).exit_code == 2


async def test_the_operators_token_needs_no_user(settings: Settings):
    assert (await casebank("token", "--scope", "casebank:operator")).stdout.count(".") == 2
    assert (await casebank("token", "--scope", "casebank:everything", "--user", "ada")).exit_code == 2
    assert (await casebank("token")).exit_code == 2
