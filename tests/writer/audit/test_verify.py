"""Verification of a user's chain: whatever is done to the audit in the database is found."""

import asyncio
import hashlib
import os
import random
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import asyncpg
import pytest
from sqlalchemy import event, insert

from app.postgres.pools import dsn
from app.runtime import signed
from retrieval.tables.audit import audit
from tests.cluster import one_postgres
from tests.fakes.openai_server import OpenAIServer
from tests.writer.blocked import begin_blocked
from tests.writer.conftest import AGENT, Bank, MakeWorker, drain, keep
from writer.audit import Change, note
from writer.audit.sealing import prune_audit, seal_all
from writer.audit.signing import SEAL_BYTES, key_of
from writer.audit.tombstone_chain import verify_tombstones
from writer.audit.verify import Verified, read_erasures, verify_user
from writer.privacy.master_keys import MasterKeys
from writer.rights.edit import set_profile
from writer.rights.erase import erase


@pytest.fixture
async def kept(bank: Bank) -> Bank:
    """The bank of a running process, which signs what it notes."""
    database, _ = await signed(bank.database, MasterKeys.of(MASTER))
    return replace(bank, database=database)


MASTER = os.urandom(32)


class Forger(asyncpg.Connection):
    """A superuser, for whom no trigger and no grant is an obstacle."""

    async def forge(self, statement: str, *arguments: object) -> None:
        async with self.transaction():
            await self.execute("SET LOCAL session_replication_role = replica")  # a cluster passes on what is local
            await self.execute(statement, *arguments)


@pytest.fixture
async def forger(database_url: str) -> AsyncIterator[Forger]:
    connection = await asyncpg.connect(dsn(database_url), connection_class=Forger)
    yield connection
    await connection.close()


async def verified(bank: Bank, user: str) -> Verified:
    return await verify_user(bank.database, user, await read_erasures(bank.database))


async def write(bank: Bank, user: str, entries: int = 5) -> None:
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        for number in range(entries):
            await note(connection, Change.of((user, AGENT), "bob", "do", number=number, text='ü\n"\x7f'))


async def test_what_nobody_touched_holds(kept: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str):
    await keep(kept, user, reward=0.123456789)
    await drain(replace(worker_on(server), database=kept.database))
    await write(kept, user)
    async with kept.database.as_user(user, datetime.now(UTC)) as connection:
        await set_profile(connection, kept.author(user), AGENT, {"explore": 0.05, "window_size": 10**6})
    found = await verified(kept, user)
    assert (found.fault, found.seq) == (None, 7)


async def test_payloads_of_any_json_hold(kept: Bank, user: str):
    payload = {"b": [1, 1.0, -0.0, 1e300, 1e-300, 10**30, True, None, "ﬀ 😀 \u2028 \\ \x01"], "a": {"": {}, "ä": []}}
    async with kept.database.as_user(user, datetime.now(UTC)) as connection:
        await note(connection, Change.of((user, None), "ada", "odd", **payload))
    assert (await verified(kept, user)).fault is None


EDITS: dict[str, str] = {
    "another payload": "UPDATE audit SET payload = '{\"number\": 9}' WHERE user_sub = $1 AND id = $2",
    "another actor": "UPDATE audit SET actor = 'mallory' WHERE user_sub = $1 AND id = $2",
    "an actor's tombstone": (
        "UPDATE audit SET actor = 'erased:' || encode(sha256(actor::bytea), 'hex') WHERE user_sub = $1 AND id = $2"
    ),
    "another action": "UPDATE audit SET action = 'undo' WHERE user_sub = $1 AND id = $2",
    "another agent": "UPDATE audit SET agent_key = NULL WHERE user_sub = $1 AND id = $2",
    "another subject": "UPDATE audit SET subject_id = id WHERE user_sub = $1 AND id = $2",
    "another time": (
        "UPDATE audit SET created_at = (created_at AT TIME ZONE 'UTC' - interval '1 microsecond') AT TIME ZONE 'UTC'"
        " WHERE user_sub = $1 AND id = $2"
    ),
    "a time that never comes": "UPDATE audit SET created_at = 'infinity' WHERE user_sub = $1 AND id = $2",
    "a time before Christ": "UPDATE audit SET created_at = '0044-03-15 BC' WHERE user_sub = $1 AND id = $2",
    "a time beyond the calendar": "UPDATE audit SET created_at = '20000-01-01' WHERE user_sub = $1 AND id = $2",
    "another id": "UPDATE audit SET id = md5(id::text)::uuid WHERE user_sub = $1 AND id = $2",
    "another signature": "UPDATE audit SET mac = sha256(mac) WHERE user_sub = $1 AND id = $2",
    "no signature": "UPDATE audit SET mac = NULL WHERE user_sub = $1 AND id = $2",
    "no entry": "DELETE FROM audit WHERE user_sub = $1 AND id = $2",
    "no link": "DELETE FROM audit_links WHERE user_sub = $1 AND entry_id = $2",
    "another hash": "UPDATE audit_links SET hash = sha256(hash) WHERE user_sub = $1 AND entry_id = $2",
    "no entry and no link": (
        "WITH gone AS (DELETE FROM audit WHERE user_sub = $1 AND id = $2)"
        " DELETE FROM audit_links WHERE user_sub = $1 AND entry_id = $2"
    ),
    "a copy beside it": (
        "INSERT INTO audit (user_sub, id, actor, action, payload, mac) SELECT user_sub, gen_random_uuid(), actor,"
        " action, payload, mac FROM audit WHERE user_sub = $1 AND id = $2"
    ),
    "two in each other's place": (
        "UPDATE audit_links l SET entry_id = o.entry_id FROM audit_links o WHERE l.user_sub = $1 AND o.user_sub = $1"
        " AND (SELECT seq FROM audit_links WHERE user_sub = $1 AND entry_id = $2) IN (l.seq, o.seq)"
        " AND abs(l.seq - o.seq) = 1 AND l.seq + o.seq = (SELECT 2 * seq - 1 FROM audit_links"
        " WHERE user_sub = $1 AND entry_id = $2)"
    ),
    "the head a step back": "UPDATE audit_heads SET seq = seq - 1 WHERE user_sub = $1 AND $2::uuid IS NOT NULL",
    "no head": "DELETE FROM audit_heads WHERE user_sub = $1 AND $2::uuid IS NOT NULL",
}
"""Statements that forge; they compute values by immutable functions, since a cluster refuses others of a column."""


@pytest.mark.parametrize("sealed", ["", "sealed"])
@pytest.mark.parametrize("edit", EDITS)
async def test_every_edit_is_found(kept: Bank, forger: Forger, user: str, edit: str, sealed: str):
    await write(kept, user, 6)
    if sealed:
        await seal_all(kept.database)
    if "place" in edit:
        await forger.forge("ALTER TABLE audit_links DROP CONSTRAINT IF EXISTS audit_links_user_sub_entry_id_key")
    entry = await forger.fetchval("SELECT entry_id FROM audit_links WHERE user_sub = $1 AND seq = 4", user)
    await forger.forge(EDITS[edit], user, entry)
    found = await verified(kept, user)
    assert found.fault is not None
    if edit not in {"a copy beside it", "the head a step back", "no head"}:
        assert found.fault.seq in {3, 4}
    await forger.forge("DELETE FROM audit_heads WHERE user_sub = $1", user)  # or each later seal would verify it again


async def test_a_cut_tail_is_found_whatever_is_cut(kept: Bank, forger: Forger, user: str):
    await write(kept, user)
    await forger.forge("DELETE FROM audit_links WHERE user_sub = $1 AND seq = 5", user)
    await forger.forge("DELETE FROM audit WHERE user_sub = $1 AND payload @> '{\"number\": 4}'", user)
    found = await verified(kept, user)
    assert found.fault.seq == 5


async def relink(forger: Forger, user: str) -> None:
    """Links all that is there anew, as the triggers would have."""
    await forger.forge("DELETE FROM audit_links WHERE user_sub = $1", user)
    await forger.forge("UPDATE audit_heads SET seq = 0, hash = sha256(user_sub::bytea) WHERE user_sub = $1", user)
    for entry in await forger.fetch("SELECT * FROM audit WHERE user_sub = $1 ORDER BY id", user):
        await forger.forge("SELECT casebank_link($1)", tuple(entry))


@pytest.mark.parametrize("edit", ["another payload", "another actor", "no signature", "a copy beside it"])
async def test_a_change_is_found_even_if_the_chain_is_linked_anew(kept: Bank, forger: Forger, user: str, edit: str):
    await write(kept, user)
    entry = await forger.fetchval("SELECT entry_id FROM audit_links WHERE user_sub = $1 AND seq = 3", user)
    await forger.forge(EDITS[edit], user, entry)
    await relink(forger, user)
    assert (await verified(kept, user)).fault


async def test_a_deletion_with_the_chain_linked_anew_is_found_once_it_was_sealed(kept: Bank, forger: Forger, user: str):
    await write(kept, user)
    await seal_all(kept.database)
    await forger.forge("DELETE FROM audit WHERE user_sub = $1 AND payload @> '{\"number\": 2}'", user)
    await relink(forger, user)
    found = await verified(kept, user)
    assert "seal" in found.fault.what


REMOVE_SEAL = "UPDATE audit_heads SET seal = NULL, sealed_seq = $2 WHERE user_sub = $1"


async def write_long_ago(bank: Bank, user: str) -> None:
    """Adds entries whose ids and times are an hour old."""
    then = datetime.now(UTC) - timedelta(hours=1)
    key = key_of(bank.database.engine)
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        for number in range(5):
            made = Change.of((user, AGENT), "bob", "do", number=number).entry(None)
            millis = int(then.timestamp() * 1000)
            made |= {"id": UUID(int=millis << 80 | 7 << 76 | 2 << 62 | number), "created_at": then}
            await connection.execute(insert(audit).values(made | {"mac": key.entry(made)}))


@pytest.mark.parametrize("sealed_seq", [0, 4])
async def test_a_deletion_with_the_chain_linked_anew_is_found_though_the_seal_was_removed(
    kept: Bank, forger: Forger, user: str, sealed_seq: int
):
    await write_long_ago(kept, user)
    await seal_all(kept.database)
    await forger.forge("DELETE FROM audit WHERE user_sub = $1 AND payload @> '{\"number\": 2}'", user)
    await relink(forger, user)
    await forger.forge(REMOVE_SEAL, user, sealed_seq)
    assert "no seal speaks for it" in (await verified(kept, user)).fault.what
    await write(kept, user)
    assert user in {each.user_sub for each in (await seal_all(kept.database)).broken}
    assert (await verified(kept, user)).fault


async def test_a_history_unsigned_and_dated_before_the_key_is_found(kept: Bank, forger: Forger, user: str):
    await write(kept, user)
    await seal_all(kept.database)
    await forger.forge("UPDATE audit SET mac = NULL, created_at = '2020-01-01' WHERE user_sub = $1", user)
    await relink(forger, user)
    await forger.forge(REMOVE_SEAL, user, 0)
    assert "not signed" in (await verified(kept, user)).fault.what


@one_postgres
async def test_entries_from_while_no_service_ran_are_sealed_by_the_next(kept: Bank, forger: Forger, user: str):
    key, hours = key_of(kept.database.engine), timedelta(hours=2)
    before = await forger.fetchval("SELECT seal FROM erasure_heads")
    stopped = before[:SEAL_BYTES] + key.time_of_sealing(datetime.now(UTC) - hours)
    await forger.forge("UPDATE erasure_heads SET seal = $1", stopped)
    await write_long_ago(kept, user)
    assert (await verified(kept, user)).fault is None
    await seal_all(kept.database)
    sealed = await verified(kept, user)
    assert (sealed.fault, sealed.sealed_seq) == (None, 5)


@one_postgres
@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE erasure_heads SET seal = NULL, sealed_seq = 0",
        "UPDATE erasure_heads SET seal = substr(seal, 1, 32)",
        "UPDATE erasure_heads SET seal = substr(seal, 1, 32) || sha256('') || sha256('')",
        "UPDATE erasure_heads SET seal = NULL, sealed_seq = 0, seq = 0, hash = sha256('erasures')",
    ],
)
async def test_removed_erasures_and_a_removed_seal_of_them_are_found(kept: Bank, forger: Forger, user: str, edit: str):
    await erase(kept.database, user)
    await seal_all(kept.database)
    await forger.execute("SET session_replication_role = replica")
    tables = {name: await forger.fetch(f"SELECT * FROM {name}") for name in ("erasures", "erasure_links")}  # noqa: S608 - our own words
    head = await forger.fetchrow("SELECT * FROM erasure_heads")
    if "seq = 0, hash" in edit:
        await forger.execute("DELETE FROM erasures; DELETE FROM erasure_links")
    await forger.execute(edit)
    found = (await verify_tombstones(kept.database)).fault, (await seal_all(kept.database)).tombstones.fault
    for name, rows in tables.items():  # as before, for other tests
        await forger.execute(f"DELETE FROM {name}")  # noqa: S608 - our own words
        await forger.copy_records_to_table(name, records=rows)
    await forger.execute(
        "UPDATE erasure_heads SET seq = $2, hash = $3, sealed_seq = $4, seal = $5 WHERE chain = $1", *head
    )
    assert all(found)
    assert (await verify_tombstones(kept.database)).fault is None


async def test_a_round_of_sealing_reads_the_erasures_once_however_many_chains_grew(kept: Bank, user: str):
    await seal_all(kept.database)
    for number in range(3):
        await write(kept, f"{user}-{number}")
    statements = list[str]()
    event.listen(
        kept.database.engine.sync_engine, "before_cursor_execute", lambda _c, _u, sql, *_: statements.append(sql)
    )
    done = await seal_all(kept.database)
    assert done.sealed == 3
    again = len(done.broken)  # for chains of other tests: an erasure may explain a fault
    assert sum("SELECT erasure_heads.seal" in each for each in statements) == 1 + again


async def test_a_broken_chain_is_never_sealed(kept: Bank, forger: Forger, user: str):
    await write(kept, user)
    await seal_all(kept.database)
    await write(kept, user)
    await forger.forge("DELETE FROM audit WHERE user_sub = $1 AND payload @> '{\"number\": 2}'", user)
    await relink(forger, user)
    assert user in {found.user_sub for found in (await seal_all(kept.database)).broken}
    assert (await verified(kept, user)).fault


async def test_an_entry_put_in_with_the_triggers_at_work_is_found(kept: Bank, owner: asyncpg.Connection, user: str):
    await write(kept, user)
    await owner.execute(
        "INSERT INTO audit (user_sub, id, actor, action, payload) VALUES ($1, gen_random_uuid(), $1, 'forged', '{}')",
        user,
    )
    found = await verified(kept, user)
    assert (found.fault.seq, "not signed" in found.fault.what) == (6, True)


async def test_an_entry_put_in_that_is_too_deep_to_read_is_found(kept: Bank, owner: asyncpg.Connection, user: str):
    await write(kept, user)
    await owner.execute(
        "INSERT INTO audit (user_sub, id, actor, action, payload, mac)"
        " VALUES ($1, gen_random_uuid(), $1, 'forged', $2::text::jsonb, sha256(''))",
        user,
        '{"a":' + "[" * 3_000 + "]" * 3_000 + "}",
    )
    found = await verified(kept, user)
    assert (found.fault.seq, "signature is false" in found.fault.what) == (6, True)


async def test_any_run_of_random_edits_is_found(kept: Bank, forger: Forger):
    rng = random.Random(7)
    columns = {"actor": "'x'", "action": "'x'", "payload": "'{\"x\": 1}'", "created_at": "now() - interval '1 day'"}
    users = [f"random-{world}" for world in range(40)]
    for user in users:
        await write(kept, user, rng.randint(1, 6))
    await seal_all(kept.database)
    for user in users:
        if rng.random() < 0.5:
            await write(kept, user, rng.randint(1, 3))
        assert (await verified(kept, user)).fault is None
        for _ in range(rng.randint(1, 3)):
            entry = await forger.fetchval(
                "SELECT entry_id FROM audit_links WHERE user_sub = $1 ORDER BY random() LIMIT 1", user
            )
            column = rng.choice(list(columns))
            await forger.forge(
                rng.choice(
                    [
                        f"UPDATE audit SET {column} = {columns[column]} WHERE user_sub = $1 AND id = $2",  # noqa: S608 - our own words
                        "DELETE FROM audit WHERE user_sub = $1 AND id = $2",
                        "DELETE FROM audit_links WHERE user_sub = $1 AND entry_id = $2",
                        EDITS["a copy beside it"],
                    ]
                ),
                user,
                entry,
            )
        assert (await verified(kept, user)).fault is not None, user


async def test_transactions_at_the_same_time_make_one_chain(kept: Bank, user: str):
    async def some(number: int) -> None:
        for _ in range(10):
            await write(kept, user, 1 + number % 2)

    await asyncio.gather(*(some(number) for number in range(8)))
    found = await verified(kept, user)
    assert (found.fault, found.seq) == (None, 4 * 10 * 2 + 4 * 10)


async def test_a_transaction_that_fails_leaves_no_gap(kept: Bank, user: str):
    await write(kept, user)

    async def fail() -> None:
        async with kept.database.as_user(user, datetime.now(UTC)) as connection:
            await note(connection, Change.of((user, AGENT), "bob", "fail"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    await write(kept, user)
    found = await verified(kept, user)
    assert (found.fault, found.seq) == (None, 10)


async def test_the_rest_holds_after_pruning(kept: Bank, forger: Forger, user: str):
    await write(kept, user, 3)
    now = datetime.now(UTC)
    await write(kept, user, 4)
    assert await prune_audit(kept.database, user, now) == 3
    await write(kept, user, 1)
    found = await verified(kept, user)
    assert (found.fault, found.seq, found.pruned[0]) == (None, 8, 3)
    await seal_all(kept.database)
    assert (await verified(kept, user)).fault is None
    assert await prune_audit(kept.database, user, datetime.now(UTC) + timedelta(days=1)) == 5
    assert (await verified(kept, user)).fault is None


async def test_a_start_that_was_not_pruned_by_casebank_is_missed(kept: Bank, forger: Forger, user: str):
    await write(kept, user, 5)
    await seal_all(kept.database)
    await forger.forge(
        "UPDATE audit_heads h SET pruned_seq = 2, pruned_hash = l.hash FROM audit_links l"
        " WHERE h.user_sub = $1 AND l.user_sub = $1 AND l.seq = 2",
        user,
    )
    await forger.forge(
        "DELETE FROM audit WHERE user_sub = $1"
        " AND id IN (SELECT entry_id FROM audit_links WHERE user_sub = $1 AND seq < 3)",
        user,
    )
    await forger.forge("DELETE FROM audit_links WHERE user_sub = $1 AND seq < 3", user)
    assert (await verified(kept, user)).fault


async def test_an_erased_actor_leaves_the_chains_of_others_whole(kept: Bank, forger: Forger, user: str):
    actor = f"actor of {user}"
    async with kept.database.as_user(user, datetime.now(UTC)) as connection:
        await note(connection, Change.of((user, AGENT), actor, "do"))
    await seal_all(kept.database)
    await erase(kept.database, actor)
    digest = hashlib.sha256(actor.encode()).hexdigest()
    await forger.forge(
        "UPDATE audit SET actor = $2 WHERE user_sub = $1 AND actor = $3", user, f"erased:{digest}", actor
    )
    assert (await verified(kept, user)).fault is None


async def test_an_actor_that_is_erased_while_chains_are_sealed_makes_none_look_changed(
    kept: Bank, forger: Forger, owner: asyncpg.Connection, user: str
):
    first, second, actor = f"{user}-1", f"{user}-2", f"actor of {user}"
    for each in (first, second):
        async with kept.database.as_user(each, datetime.now(UTC)) as connection:
            await note(connection, Change.of((each, AGENT), actor, "do"))
    async with asyncio.timeout(60):
        async with kept.database.as_eraser(first):  # the chain of the first is waited for
            sealing = await begin_blocked(owner, seal_all(kept.database))
            await erase(kept.database, actor)
            digest = hashlib.sha256(actor.encode()).hexdigest()
            await forger.forge("UPDATE audit SET actor = $2 WHERE actor = $1", actor, f"erased:{digest}")
        sealed = await sealing
    assert {first, second}.isdisjoint(each.user_sub for each in sealed.broken)


async def test_an_erased_user_begins_a_chain_anew(kept: Bank, user: str):
    await write(kept, user)
    receipt = await erase(kept.database, user)
    assert receipt.clean
    assert receipt.rows["audit_links"] == 5
    kept.keyring.forget(user)
    await write(kept, user, 2)
    found = await verified(kept, user)
    assert (found.fault, found.seq) == (None, 2)


SERVICE_MAY_NOT: dict[str, str] = {
    "change an entry": "UPDATE audit SET action = 'undo'",
    "delete an entry": "DELETE FROM audit WHERE payload @> '{\"number\": 2}'",
    "delete a link": "DELETE FROM audit_links WHERE seq = 2",
    "change a link": "UPDATE audit_links SET hash = sha256(hash)",
    "put in a link": "INSERT INTO audit_links (user_sub, seq, entry_id, hash) SELECT user_sub, 9, entry_id, hash"
    " FROM audit_links WHERE seq = 1",
    "move the head": "UPDATE audit_heads SET seq = 1",
    "delete all of it": "DELETE FROM audit_heads; DELETE FROM audit_links; DELETE FROM audit",
    "link by hand": "SELECT casebank_link(ROW(audit.*)::audit) FROM audit",
}


@pytest.mark.parametrize("deed", SERVICE_MAY_NOT)
async def test_the_service_itself_may_not(kept: Bank, user: str, deed: str):
    await write(kept, user)

    async def act() -> None:
        async with kept.database.as_user(user, datetime.now(UTC)) as connection:
            for statement in SERVICE_MAY_NOT[deed].split("; "):
                await connection.exec_driver_sql(statement)

    with pytest.raises(Exception, match=r"permission denied|append-only|goes with its user"):
        await act()
    assert (await verified(kept, user)).fault is None


async def test_erasures_that_were_read_before_an_actor_was_erased_break_no_chain(kept: Bank, user: str):
    before = await read_erasures(kept.database)
    actor = f"{user}-actor"
    async with kept.database.as_user(user, datetime.now(UTC)) as connection:
        await note(connection, Change.of((user, AGENT), actor, "do"))
    await erase(kept.database, actor)
    assert (await verify_user(kept.database, user, before)).fault is None
