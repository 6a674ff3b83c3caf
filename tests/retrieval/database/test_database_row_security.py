"""Who may see what, asked of the database itself: row-level security, roles, keys, migrations."""

import hashlib
import json
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from alembic.util.exc import CommandError
from sqlalchemy import ForeignKeyConstraint, PrimaryKeyConstraint, Table, UniqueConstraint, select, text
from sqlalchemy.dialects.postgresql import insert as upsert

from alembic import command
from app.postgres import EmbeddedPostgres
from app.postgres.migrate import migrate, with_alembic
from app.postgres.pools import SERVICE_ROLE, dsn, service_database
from app.providers.wordllama import WordLlamaEmbedder
from retrieval.database.database import Database
from retrieval.ranking.retrieved import Question
from retrieval.retrieve import Reader
from retrieval.search.candidates import CaseSearch
from retrieval.tables.audit import erasure_heads, erasure_links, readmissions
from retrieval.tables.cases import case_tools, inserted_memories
from retrieval.tables.failures import advice, failures
from retrieval.tables.keys import installation_keys, jobs, master_keys, rate_limits, token_revocations, user_keys
from retrieval.tables.memories import facts, knowledge, memories
from retrieval.tables.metadata import USER_TABLES, metadata
from retrieval.tables.procedures import procedure_reviews, procedures, reflections
from retrieval.tables.profiles import llm_usage
from retrieval.tables.runs import checkpoints, findings, run_steps, runs
from retrieval.tables.sessions import session_summaries, sessions, turns
from tests.cluster import CITUS_URL, one_postgres
from tests.conftest import new_database
from tests.policies import stored
from writer.author import Author
from writer.privacy.keys import Keyring
from writer.queue.worker import Worker
from writer.retain.retain import retain
from writer.rewards.feedback import Feedback, give_feedback
from writer.rights.erase import erase
from writer.run import FinishedRun
from writer.training import lifecycle

WORKER_ROLE, ERASER_ROLE = "casebank_worker", "casebank_eraser"
A, B, GONE = "alice", "bob", "carol"
SERVICE_TABLES = {
    "jobs",
    "master_keys",
    "installation_keys",
    "erasure_links",
    "erasure_heads",
    "token_revocations",
    "readmissions",
}
"""The tables that are about the service, with nothing of any user but digests."""
SHARED = {"shared_knowledge", "shared_memories"}
"""What an operator writes for all users of an agent: content of nobody's."""
APPENDED = {"audit", "audit_links", "audit_heads"}
"""What the service adds to, at most, and never changes."""
WRITTEN_ONCE = {"session_summaries"}
"""What the service adds and deletes, and may never change."""
BY_TRIGGERS = {"audit_links", "audit_heads", "inserted_memories"}
"""What triggers alone add to."""
TABLES = [table for table in metadata.tables.values() if table.name not in SERVICE_TABLES | SHARED]
NAMES = [table.name for table in TABLES]
EVERY_NAME = {*NAMES, *SERVICE_TABLES, *SHARED, "alembic_version"}
LESSON = {
    "procedure_name": "turn the tap",
    "semantic_description": "how to water",
    "initial_failure_summary": "no water",
    "identified_root_cause": "the tap was closed",
    "successful_intervention": "opened it",
    "learned_procedure_steps": ["turn the tap"],
    "example_scenario_abstract": "watering",
}


def others(user: str, case_id: UUID) -> dict[Table, dict[str, Any]]:
    """Rows of the tables that only runs with tools, a language model or the service itself fill."""
    mine = {"user_sub": user, "agent_key": "gardener"}
    used = {"case_id": case_id, "tool": "tap", "calls": 1, "errors": 0, "forms": [], "failures": []}
    told = {"purpose": "analyse", "calls": 1, "failures": 0, "prompt_tokens": 1, "completion_tokens": 1}
    taken = {"user_sub": user, "bucket": b"b", "granted": 1, "full_at": datetime.now(UTC)}
    usage = mine | told | {"day": datetime.now(UTC).date()}
    hashes = {"tool": 1, "sign": 2, "error": [3], "call": [4], "fix": [5], "fix_id": 6, "calls": 1}
    failed = mine | hashes | {"case_id": case_id, "place": 1, "words": b"s"}
    due = mine | {"id": case_id}
    return {case_tools: mine | used, reflections: due, failures: failed, llm_usage: usage, rate_limits: taken}


async def fill(url: str) -> None:
    """Leaves a row of Alice and of Bob in every table that holds users' rows, and a tombstone of Carol."""
    async with service_database(url) as database:
        await _fill(database)


async def _fill(database: Database) -> None:
    embedder, keyring = WordLlamaEmbedder(), Keyring(os.urandom(32))
    for user in (A, B, GONE):
        author = Author(user, user, datetime.now(UTC))
        run = {"agent": "gardener", "task": f"water the garden of {user}", "outcome": "success"}
        kept = await retain(
            database, keyring, FinishedRun.model_validate({**run, "procedure": {"data": LESSON}}), author
        )
        worker = Worker(database, embedder, keyring)
        while await worker.run_once():
            pass
        question = Question(CaseSearch(agent_key="gardener", query="garden"))
        slate = await Reader(database, embedder).retrieve(user, author.authorised_at, question)
        assert [choice.row.id for choice in slate.choices] == [kept.case_id]
        async with database.as_user(user, author.authorised_at) as connection:
            await give_feedback(connection, user, user, Feedback(1.0, "user", case_id=kept.case_id))
            await lifecycle.add(connection, user, "gardener", stored())
            learned = select(procedures.c.id).where(procedures.c.user_sub == user).limit(1)
            said = {"procedure_id": await connection.scalar(learned), "version": 1, "verdict": "good", "actor": user}
            key_id = await connection.scalar(select(user_keys.c.key_id).where(user_keys.c.user_sub == user))
            under_way = {"user_sub": user, "id": kept.case_id, "agent_key": "gardener", "key_id": key_id, "words": b"s"}
            step = {"user_sub": user, "run_id": kept.case_id, "number": 1, "payload": b"s"}
            found = {"user_sub": user, "run_id": kept.case_id, "agent_key": "gardener", "step": 1, "part": 0}
            found |= {"kind": "other", "success": True, "query_hash": 1, "payload": b"s"}
            more = {
                procedure_reviews: {"user_sub": user, **said},
                advice: {
                    "user_sub": user,
                    "decision_id": slate.retrieval_id,
                    "agent_key": "gardener",
                    "sign": 2,
                },
                runs: under_way,
                run_steps: step,
                findings: found,
            }
            session = {"user_sub": user, "id": kept.case_id, "agent_key": "gardener", "key_id": key_id, "name": "chat"}
            turn = {
                "user_sub": user,
                "session_id": kept.case_id,
                "number": 1,
                "payload": b"s",
                "said_at": datetime.now(UTC),
            }
            known = {"user_sub": user, "id": kept.case_id, "agent_key": "gardener", "key_id": key_id, "kind": "fact"}
            over = dict.fromkeys(("valid_from", "valid_to"), datetime.now(UTC))  # it is told to nobody
            known |= {"words": b"s", "said": b"s", "origin": "hand", **over}
            told = {
                "user_sub": user,
                "id": kept.case_id,
                "agent_key": "gardener",
                "kind": "fact",
                "fact_id": kept.case_id,
            }
            entry = {name: known[name] for name in ("user_sub", "id", "agent_key", "key_id", "words", "said")}
            more[knowledge] = entry | {"category": "c", "entry_type": "t"}
            more |= {sessions: session, turns: turn, facts: known, memories: told}
            summary = {"user_sub": user, "session_id": kept.case_id, "last_turn": 1, "payload": b"s"}
            more |= {session_summaries: summary}
            named = dict.fromkeys(("thread", "namespace", "task"), b"") | {"checkpoint_id": kept.case_id, "place": 0}
            more[checkpoints] = named | {
                name: known[name] for name in ("user_sub", "id", "agent_key", "key_id", "words")
            }
            for table, row in {**others(user, kept.case_id), **more}.items():
                await connection.execute(upsert(table).values(row).on_conflict_do_nothing())
        queued = {"user_sub": user, "id": kept.case_id, "agent_key": "gardener", "content": "c", "metadata": {}}
        async with database.as_user(user, author.authorised_at) as connection:  # a cluster refuses two roles in one
            await connection.execute(text("SET LOCAL ROLE NONE"))  # a trigger alone inserts there
            await connection.execute(upsert(inserted_memories).values(**queued, status="dead"))
    assert (await erase(database, GONE)).clean


@dataclass(frozen=True)
class Bank:
    """The same database, as its owner and as the plain role of the service."""

    url: str
    owner: asyncpg.Connection
    service: asyncpg.Connection

    async def become(self, user: str) -> None:
        """Sets the user until the transaction ends."""
        await self.service.execute(f"SET LOCAL app.user_sub = '{user}'")  # which a cluster passes on to its nodes


@pytest.fixture(scope="module")
async def filled(database_url: str) -> str:
    await fill(database_url)
    return database_url


@pytest.fixture
async def bank(filled: str) -> AsyncIterator[Bank]:
    """Every change is rolled back."""
    owner, service = [await asyncpg.connect(dsn(filled)) for _ in range(2)]
    await service.execute(f"SET ROLE {SERVICE_ROLE}")
    change = service.transaction()
    await change.start()
    yield Bank(filled, owner, service)
    await change.rollback()
    await owner.close()
    await service.close()


async def owners_of(connection: asyncpg.Connection, table: str) -> set[str]:
    return {row["user_sub"] for row in await connection.fetch(f"SELECT user_sub FROM {table}")}  # noqa: S608


def digest(user: str) -> str:
    return hashlib.sha256(user.encode()).hexdigest()


def belongs(table: str, user: str) -> str:
    """What stands in ``user_sub`` of the user's rows; a tombstone does not name whom it is for."""
    return digest(user) if table == "erasures" else user


# Rows


@pytest.mark.parametrize("table", NAMES)
async def test_without_a_user_there_are_no_rows(table: str, bank: Bank):
    assert await owners_of(bank.owner, table) == ({digest(GONE)} if table == "erasures" else {A, B})
    assert await owners_of(bank.service, table) == set()
    await bank.become("")
    assert await owners_of(bank.service, table) == set()


@pytest.mark.parametrize("table", NAMES)
async def test_a_user_sees_their_own_rows_alone(table: str, bank: Bank):
    for user in (A, B, GONE, "nobody"):
        await bank.become(user)
        mine = {belongs(table, user)} & await owners_of(bank.owner, table)
        assert await owners_of(bank.service, table) == mine


@pytest.mark.parametrize("table", NAMES)
async def test_a_user_cannot_insert_a_row_for_another(table: str, bank: Bank):
    theirs = belongs(table, GONE if table == "erasures" else B)
    stored = await bank.owner.fetchval(
        f"SELECT row_to_json(t) FROM {table} t WHERE user_sub = $1 LIMIT 1",  # noqa: S608
        theirs,
    )
    columns = [column.name for column in metadata.tables[table].c if column.computed is None]
    copied = ", ".join(f"(json_populate_record(null::{table}, $1)).{column}" for column in columns)
    copy = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({copied})"  # noqa: S608
    await bank.become(A)
    refused = "permission denied" if table in BY_TRIGGERS else "row-level security"
    with pytest.raises(asyncpg.InsufficientPrivilegeError, match=refused):
        async with bank.service.transaction():
            await bank.service.execute(copy, stored)
    if table in BY_TRIGGERS:
        return
    # the same statement for oneself gets past the policy, so it was the policy that refused
    mine = json.dumps(json.loads(stored) | {"user_sub": belongs(table, A)})
    try:
        async with bank.service.transaction():
            await bank.service.execute(copy, mine)
    except asyncpg.IntegrityConstraintViolationError:
        pass  # a foreign key, or a row of the same key


@pytest.mark.parametrize("table", [table.name for table in USER_TABLES])
async def test_a_user_can_neither_change_nor_delete_nor_give_away_across_users(table: str, bank: Bank):
    await bank.become(A)
    assert await bank.service.execute(f"DELETE FROM {table} WHERE user_sub = $1", B) == "DELETE 0"  # noqa: S608
    same = f"UPDATE {table} SET user_sub = user_sub WHERE user_sub = $1"  # noqa: S608
    if table not in APPENDED | WRITTEN_ONCE | BY_TRIGGERS:
        assert await bank.service.execute(same, B) == "UPDATE 0"
    refused = r"row-level security|permission denied|partition value"  # of which a cluster allows no change
    with pytest.raises(asyncpg.PostgresError, match=refused):
        await bank.service.execute(f"UPDATE {table} SET user_sub = $1", B)  # noqa: S608


async def test_a_tombstone_cannot_be_changed_or_taken_away(bank: Bank):
    await bank.become(GONE)
    for statement in ("UPDATE erasures SET erased_at = now()", "DELETE FROM erasures"):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            async with bank.service.transaction():
                await bank.service.execute(statement)


async def test_the_user_of_a_transaction_is_forgotten_when_it_ends(filled: str):
    count = text("SELECT count(*) FROM cases")
    async with service_database(filled, pool_size=1) as database:
        async with database.as_user(A, datetime.now(UTC)) as connection:
            assert await connection.scalar(count) == 1
        async with database.engine.connect() as connection:
            assert await connection.scalar(count) == 0


@one_postgres
async def test_the_user_of_a_fast_statement_is_forgotten_when_it_ends(filled: str):
    async with service_database(filled, pool_size=1) as database:
        question = Question(CaseSearch(agent_key="gardener", query="garden"))
        assert (await Reader(database, WordLlamaEmbedder()).retrieve(A, datetime.now(UTC), question)).choices
        async with database.fast(A, datetime.now(UTC)) as connection:
            assert await connection.driver.fetchval("SELECT count(*) FROM cases") == 0
            assert await connection.driver.fetchval("SELECT current_setting('synchronous_commit')") == "on"


async def test_on_a_cluster_fast_statements_are_one_transaction_which_enters_first(filled: str):
    count = "SELECT count(*) FROM cases"
    async with service_database(f"{filled}&citus=true", pool_size=1) as database:
        async with database.fast(A, datetime.now(UTC)) as connection:
            assert await connection.driver.fetchval(count) == 1
            assert await connection.driver.fetchval("SELECT casebank_enter($1, $2)", A, datetime.now(UTC))
            assert await connection.driver.fetchval(count) == 1
        async with database.fast("a stranger", datetime.now(UTC)) as connection:
            assert await connection.driver.fetchval(count) == 0


# Shared knowledge, which everybody reads and an operator writes


async def test_every_user_reads_shared_knowledge_and_none_can_write_it(bank: Bank):
    entry = ("id", "agent_key", "category", "entry_type", "title", "text", "said")
    made = f"INSERT INTO shared_knowledge ({', '.join(entry)}) VALUES ($1, 'gardener', 'c', 't', '', 'water', 's')"  # noqa: S608
    found = (
        "INSERT INTO shared_memories (id, agent_key, knowledge_id, search_text) VALUES ($1, 'gardener', $1, 'water')"
    )
    id_ = UUID(int=1)
    for statement in (made, found):
        await bank.owner.execute(statement, id_)
    try:
        for user in (A, "nobody"):
            await bank.become(user)
            for table in sorted(SHARED):
                assert await bank.service.fetchval(f"SELECT count(*) FROM {table}") == 1  # noqa: S608
        for statement in (
            made.replace("'s')", "'s2')"),
            found,
            "UPDATE shared_knowledge SET text = 'forged' WHERE id = $1",
            "UPDATE shared_memories SET search_text = 'forged' WHERE id = $1",
            "DELETE FROM shared_knowledge WHERE id = $1",
            "DELETE FROM shared_memories WHERE id = $1",
        ):
            with pytest.raises(asyncpg.InsufficientPrivilegeError, match="permission denied"):
                async with bank.service.transaction():
                    await bank.service.execute(statement, id_)
        for role in (WORKER_ROLE, ERASER_ROLE):
            for table in sorted(SHARED):
                may = "SELECT has_table_privilege($1, $2, 'INSERT, UPDATE, DELETE')"
                assert not await bank.owner.fetchval(may, role, table)
    finally:
        await bank.owner.execute("DELETE FROM shared_knowledge WHERE id = $1", id_)


# Roles


async def test_the_worker_sees_of_everybody_who_waits_and_nothing_of_what_they_wrote(bank: Bank):
    await bank.service.execute(f"SET LOCAL ROLE {WORKER_ROLE}")
    assert await owners_of(bank.service, "cases") == {A, B}
    for column in ("task", "plan", "payload", "search_text", "tags", "reward", "*"):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            async with bank.service.transaction():
                await bank.service.fetch(f"SELECT {column} FROM cases")  # noqa: S608


async def test_the_worker_has_exactly_the_rights_it_needs(bank: Bank):
    async def allowed(right: str) -> dict[str, set[str]]:
        statement = "SELECT has_column_privilege($1, $2, $3, $4)"
        granted: dict[str, set[str]] = {}
        for table in metadata.tables.values():
            for column in table.c:
                if await bank.owner.fetchval(statement, WORKER_ROLE, table.name, column.name, right):
                    granted.setdefault(table.name, set()).add(column.name)
        return granted

    queue = {"status", "attempts", "available_at", "lease_token"}
    own = {table.name: {column.name for column in table.c} for table in (jobs, master_keys)}
    keys, revoked, back = (
        {table.name: {column.name for column in table.c}}
        for table in (installation_keys, token_revocations, readmissions)
    )
    chains = {
        "audit": {"user_sub"},
        "audit_links": {"user_sub"},
        "audit_heads": {"user_sub", "seq", "sealed_seq"},
        "erasures": {"user_sub", "erased_at"},
        "erasure_links": {column.name for column in erasure_links.c},
        "erasure_heads": {column.name for column in erasure_heads.c},
    }
    assert await allowed("SELECT") == own | keys | revoked | back | chains | {
        "cases": queue | {"user_sub", "id", "agent_key", "created_at"},
        "sessions": queue | {"user_sub", "id", "agent_key", "created_at"},
        "memories": queue | {"user_sub", "id", "agent_key", "created_at"},
        "reflections": queue | {"user_sub", "id", "agent_key", "created_at"},
        "inserted_memories": queue | {"user_sub", "id", "agent_key", "created_at"},
        "profiles": {"user_sub", "agent_key", "embedding_model"},
        "user_keys": {column.name for column in user_keys.c},
    }
    sealed = {"erasure_heads": {"sealed_seq", "seal"}}
    wrapping = {"user_keys": {"wrapped_key", "master_key"}}
    queues = dict.fromkeys(("inserted_memories", "memories", "reflections", "sessions"), queue | {"last_error"})
    queues["cases"] = queue | {"last_error", "updated_at"}
    assert await allowed("UPDATE") == own | keys | sealed | wrapping | queues
    assert await allowed("INSERT") == own | keys | revoked | back
    deletable = "SELECT has_table_privilege($1, $2, 'DELETE')"
    assert {name for name in metadata.tables if await bank.owner.fetchval(deletable, WORKER_ROLE, name)} == {
        *revoked,
        *back,
    }


@pytest.mark.parametrize("role", [SERVICE_ROLE, WORKER_ROLE, ERASER_ROLE])
async def test_the_roles_are_plain_and_own_nothing(role: str, bank: Bank):
    row = await bank.owner.fetchrow("SELECT * FROM pg_roles WHERE rolname = $1", role)
    rights = ("rolsuper", "rolbypassrls", "rolcreaterole", "rolcreatedb", "rolreplication", "rolcanlogin")
    assert [right for right in rights if row[right]] == (["rolcanlogin"] if CITUS_URL else [])
    for catalog, owner in [
        ("pg_class", "relowner"),
        ("pg_proc", "proowner"),
        ("pg_namespace", "nspowner"),
        ("pg_type", "typowner"),
        ("pg_database", "datdba"),
    ]:
        owned = f"SELECT count(*) FROM {catalog} WHERE {owner} = $1"  # noqa: S608
        assert await bank.owner.fetchval(owned, row["oid"]) == 0, catalog
    assert not await bank.owner.fetchval("SELECT has_schema_privilege($1, 'public', 'CREATE')", role)


async def test_the_service_may_become_the_worker_and_the_eraser_and_nobody_else(bank: Bank):
    others = await bank.owner.fetch(
        "SELECT rolname FROM pg_roles WHERE pg_has_role($1, oid, 'MEMBER') AND rolname <> $1", SERVICE_ROLE
    )
    assert {row["rolname"] for row in others} == {WORKER_ROLE, ERASER_ROLE}
    for role in (WORKER_ROLE, ERASER_ROLE):
        inherits = await bank.owner.fetchval("SELECT pg_has_role($1, $2, 'USAGE')", SERVICE_ROLE, role)
        assert not inherits  # else the queue's policy would open every user's rows to the service


async def test_both_pools_of_the_service_are_the_plain_role(filled: str):
    async with service_database(filled) as database:
        async with database.engine.connect() as connection:
            assert await connection.scalar(text("SELECT current_user")) == SERVICE_ROLE
        async with database.fast(A, datetime.now(UTC)) as connection:
            assert await connection.driver.fetchval("SELECT current_user") == SERVICE_ROLE


async def test_row_level_security_is_forced_on_every_table(bank: Bank):
    rows = await bank.owner.fetch(
        "SELECT relname, relrowsecurity AND relforcerowsecurity AS forced FROM pg_class"
        " WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')",
    )
    assert {row["relname"] for row in rows} == EVERY_NAME
    assert {row["relname"] for row in rows if not row["forced"]} == {"alembic_version"}
    assert not await bank.owner.fetchval(f"SELECT has_table_privilege('{SERVICE_ROLE}', 'alembic_version', 'UPDATE')")


# Keys


@pytest.mark.parametrize("table", TABLES, ids=NAMES)
def test_every_key_of_the_schema_starts_with_the_user(table: Table):
    keys = [c for c in table.constraints if isinstance(c, PrimaryKeyConstraint | UniqueConstraint)]
    foreign = [c for c in table.constraints if isinstance(c, ForeignKeyConstraint)]
    assert any(isinstance(key, PrimaryKeyConstraint) for key in keys)
    assert {key.columns[0].name for key in [*keys, *foreign]} == {"user_sub"}
    assert {key.elements[0].column.name for key in foreign} <= {"user_sub"}
    assert {next(iter(index.columns)).name for index in table.indexes if index.unique} <= {"user_sub"}


def test_only_the_services_own_tables_have_no_user_and_they_have_no_place_for_content():
    assert {table.name for table in metadata.tables.values() if "user_sub" not in table.c} == SERVICE_TABLES | SHARED
    known = {"fingerprint", "status", "began_at", "replaces", "rewrapped", "finished_at"}
    assert set(master_keys.c.keys()) == known
    assert set(jobs.c.keys()) == {"name", "last_started", "last_succeeded", "failures", "last_error", "created_at"}


async def test_the_worker_wraps_the_key_of_nobody_but_the_user_it_entered_as(bank: Bank):
    await bank.become(A)
    await bank.service.execute(f"SET LOCAL ROLE {WORKER_ROLE}")
    assert await owners_of(bank.service, "user_keys") == {A, B}
    assert await bank.service.execute("UPDATE user_keys SET master_key = 'x'") == "UPDATE 1"


async def test_no_user_sees_or_changes_the_services_own_table(bank: Bank):
    await bank.become(A)
    for statement in (
        "SELECT * FROM jobs",
        "INSERT INTO jobs (name) VALUES ('x')",
        "DELETE FROM jobs",
        "INSERT INTO master_keys (fingerprint, status) VALUES ('x', 'current')",
        "UPDATE master_keys SET status = 'retired'",
        "DELETE FROM master_keys",
    ):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            async with bank.service.transaction():
                await bank.service.execute(statement)


@one_postgres
async def test_every_key_in_the_database_starts_with_the_user(bank: Bank):
    firsts = await bank.owner.fetch(
        """
        SELECT conname AS name, attname AS first FROM pg_constraint
        JOIN pg_attribute ON attrelid = conrelid AND attnum = conkey[1]
        WHERE connamespace = 'public'::regnamespace AND contype IN ('p', 'u', 'f', 'x')
        UNION ALL
        SELECT conname, attname FROM pg_constraint JOIN pg_attribute ON attrelid = confrelid AND attnum = confkey[1]
        WHERE connamespace = 'public'::regnamespace AND contype = 'f'
        UNION ALL
        SELECT indexrelid::regclass::text, attname FROM pg_index JOIN pg_class ON pg_class.oid = indrelid
        JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0]
        WHERE relnamespace = 'public'::regnamespace AND indisunique
        """
    )
    assert len(firsts) > 3 * len(TABLES)
    assert {row["name"] for row in firsts if row["first"] != "user_sub"} == {
        "alembic_version_pkc",
        *(f"{table}_pkey" for table in SERVICE_TABLES | SHARED),
        "master_keys_current_idx",
        "shared_knowledge_said_idx",
        "shared_memories_knowledge_id_fkey",
    }


# Migrations


async def tables_of(url: str) -> set[str]:
    connection = await asyncpg.connect(dsn(url))
    rows = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    await connection.close()
    return {row["tablename"] for row in rows}


async def check(url: str) -> None:
    """Raises CommandError, which says where, unless the database has exactly the tables of the schema."""
    await with_alembic(url, lambda _connection, config: command.check(config))


@one_postgres
async def test_migrations_go_up_and_down_and_up_again_on_a_bank_with_data(postgres: EmbeddedPostgres):
    url = await new_database(postgres)
    await fill(url)
    await check(url)
    await migrate(url, "base")
    assert await tables_of(url) == {"alembic_version"}
    await migrate(url)
    assert await tables_of(url) == EVERY_NAME
    await check(url)
    await fill(url)


async def test_migrating_what_is_up_to_date_changes_nothing(filled: str):
    connection = await asyncpg.connect(dsn(filled))
    before = await connection.fetchval("SELECT count(*) FROM cases")
    await migrate(filled)
    assert await connection.fetchval("SELECT count(*) FROM cases") == before == 2
    await connection.close()


@one_postgres
async def test_a_drift_is_found(postgres: EmbeddedPostgres):
    url = await new_database(postgres)
    connection = await asyncpg.connect(dsn(url))
    drifts: list[Any] = [
        "ALTER TABLE cases ADD COLUMN stray text",
        "ALTER TABLE cases DROP COLUMN stray, ALTER COLUMN task DROP NOT NULL",
        "ALTER TABLE cases ALTER COLUMN task SET NOT NULL; DROP INDEX cases_retrieval_idx",
        "CREATE INDEX cases_retrieval_idx ON cases (user_sub, retrieval_id); DROP INDEX cases_bank_idx",
    ]
    for drift in drifts:
        await connection.execute(drift)
        with pytest.raises(CommandError):
            await check(url)
    await connection.close()
