"""Erasure: nothing is left, nothing comes back, nobody else notices."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import pytest
import uuid_utils.compat as uuids
from sqlalchemy import insert, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from app.auth.revocations import Revocation, revoke, sha256
from app.postgres.pools import dsn, service_database
from app.providers.wordllama import WordLlamaEmbedder
from retrieval.errors import DatabaseUnavailable, UserErased
from retrieval.tables.audit import audit
from retrieval.tables.cases import case_embeddings, case_tools, cases, inserted_memories
from retrieval.tables.decisions import decision_slots, decisions, rewards
from retrieval.tables.failures import advice, failures
from retrieval.tables.keys import rate_limits, token_revocations, user_keys
from retrieval.tables.memories import facts, knowledge
from retrieval.tables.metadata import USER_TABLES, metadata
from retrieval.tables.procedures import procedure_reviews, procedures, reflections
from retrieval.tables.profiles import llm_usage, policies, replays
from retrieval.tables.runs import checkpoints, findings, run_steps, runs
from retrieval.tables.sessions import session_summaries, sessions, turns
from tests.cluster import one_postgres
from tests.conftest import WAITING
from tests.policies import stored
from tests.writer.blocked import begin_blocked
from tests.writer.conftest import AGENT, Bank
from writer.author import Author
from writer.memories import remember_facts
from writer.profiles import each_profile
from writer.queue.queue import Pace
from writer.queue.worker import Worker
from writer.retain.retain import retain
from writer.rewards.feedback import Feedback, give_feedback
from writer.rights.erase import NAMES, begin_again, erase
from writer.run import FinishedRun
from writer.upkeep.prune import prune_all


def run(number: int = 0) -> FinishedRun:
    return FinishedRun(agent=AGENT, task=f"task number {number}", plan=[f"step {number}"], outcome="success")


@pytest.fixture
async def working(bank: Bank) -> AsyncIterator[Worker]:
    worker = Worker(bank.database, WordLlamaEmbedder(), bank.keyring, pace=Pace(batch=4, poll_s=0.01, backoff_s=0.01))
    task = asyncio.create_task(worker.run())
    yield worker
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def fill(bank: Bank, user: str) -> None:
    """Puts at least one row of the user into every table."""
    (case_id,) = await bank.add(user, {"payload": {"turns": ["mine"]}})
    decision_id = uuids.uuid7()
    mine = {"user_sub": user, "agent_key": AGENT}
    decision = {
        "id": decision_id,
        "query": "q",
        "mode": "hybrid",
        "policy_version": "default",
        "feature_version": 1,
        "seed": 1,
        "arm": "default",
        "k": 4,
        "slate_propensity": 1.0,
        "features": b"",
    }
    lists = ("degraded", "candidate_ids", "candidate_groups", "candidate_sources", "scores")
    empty: dict[str, Any] = {"tokens": 0} | {name: [] for name in lists}
    vector = {"model": "m", "case_id": case_id, "dimension": 2, "embedding": [1.0, 0.0]}
    slot = {"user_sub": user, "decision_id": decision_id, "place": 1, "case_id": case_id, "propensity": 1.0}
    reward = {"user_sub": user, "id": uuids.uuid7(), "case_id": case_id, "reward": 1.0, "source": "user", "actor": "t"}
    entry = {"actor": "t", "action": "insert_case", "payload": {"why": "test"}}
    used = {"case_id": case_id, "tool": "tap", "calls": 1, "errors": 0, "forms": [], "failures": []}
    told = {"purpose": "analyse", "calls": 1, "failures": 0, "prompt_tokens": 1, "completion_tokens": 1}
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await connection.execute(insert(decisions).values({**mine, **decision, **empty}))
        await connection.execute(insert(decision_slots).values(slot))
        await connection.execute(insert(case_embeddings).values({**mine, **vector}))
        procedure_id = uuids.uuid7()
        await connection.execute(
            insert(procedures).values(
                {**mine, "id": procedure_id, "version": 1, "case_id": case_id, "record": {"a": 1}}
            ),
        )
        said = {"user_sub": user, "procedure_id": procedure_id, "version": 1, "verdict": "good", "actor": "t"}
        await connection.execute(insert(procedure_reviews).values(said))
        await connection.execute(insert(case_tools).values({**mine, **used}))
        await connection.execute(insert(llm_usage).values({**mine, **told, "day": datetime.now(UTC).date()}))
        await connection.execute(insert(rewards).values(reward))
        run_id = uuids.uuid7()
        key_id = await connection.scalar(select(user_keys.c.key_id).where(user_keys.c.user_sub == user))
        await connection.execute(insert(runs).values({**mine, "id": run_id, "key_id": key_id, "words": b"sealed"}))
        await connection.execute(insert(run_steps).values(user_sub=user, run_id=run_id, number=1, payload=b"sealed"))
        found = {"run_id": run_id, "step": 1, "part": 0, "kind": "other", "success": True, "query_hash": 1}
        await connection.execute(insert(findings).values({**mine, **found, "payload": b"sealed"}))
        session = {"id": run_id, "key_id": key_id, "name": "chat"}
        await connection.execute(insert(sessions).values({**mine, **session}))
        turn = {"user_sub": user, "session_id": run_id, "number": 1, "payload": b"sealed", "said_at": datetime.now(UTC)}
        await connection.execute(insert(turns).values(turn))
        summary = {"user_sub": user, "session_id": run_id, "last_turn": 1, "payload": b"sealed"}
        await connection.execute(insert(session_summaries).values(summary))
        known = {"id": run_id, "key_id": key_id, "kind": "fact", "words": b"sealed", "said": b"s", "origin": "hand"}
        await connection.execute(insert(facts).values({**mine, **known, "valid_from": datetime.now(UTC)}))
        await remember_facts(connection, user, [(AGENT, run_id, "a fact")])
        domain = {"id": run_id, "key_id": key_id, "category": "c", "entry_type": "t", "words": b"sealed", "said": b"s"}
        await connection.execute(insert(knowledge).values({**mine, **domain}))
        await keep_checkpoint(connection, {**mine, "id": run_id, "key_id": key_id})
        taken = {"user_sub": user, "bucket": b"b", "granted": 1, "full_at": datetime.now(UTC)}
        await connection.execute(insert(rate_limits).values(taken))
        await connection.execute(insert(policies).values({**mine, "version": 1, **stored()}))
        told = {"runs": 1, "questions": 0, "serves": "vote", "tallies": {}, "fit": b"fit", "newest": datetime.now(UTC)}
        await fail(connection, mine, case_id, decision_id)
        await connection.execute(insert(replays).values({**mine, **told}))
        await connection.execute(insert(audit).values({**mine, "id": uuids.uuid7(), **entry}))
    await queue_memory(bank, mine | {"id": run_id})


async def queue_memory(bank: Bank, mine: dict[str, Any]) -> None:
    """Puts a memory that was inserted by SQL into the queue, to which a trigger alone adds."""
    async with bank.database.as_user(mine["user_sub"], datetime.now(UTC)) as connection:
        await connection.execute(text("SET LOCAL ROLE NONE"))
        await connection.execute(insert(inserted_memories).values({**mine, "content": "c", "metadata": {}}))


async def keep_checkpoint(connection: AsyncConnection, mine: dict[str, Any]) -> None:
    """Puts the state of a graph into its table."""
    named = {"thread": b"t", "namespace": b"n", "task": b"", "checkpoint_id": mine["id"], "place": 0}
    await connection.execute(insert(checkpoints).values({**mine, **named, "words": b"sealed"}))


async def fail(connection: AsyncConnection, mine: dict[str, Any], case_id: UUID, decision_id: UUID) -> None:
    """Puts a failed call of the case, advice at one and a reflection into their tables."""
    hashes = {"tool": 1, "sign": 2, "error": [3], "call": [4], "fix": [5], "fix_id": 6, "calls": 1}
    await connection.execute(insert(failures).values({**mine, **hashes, "case_id": case_id, "place": 1, "words": b"w"}))
    await connection.execute(insert(reflections).values({**mine, "id": case_id}))
    await connection.execute(insert(advice).values({**mine, "decision_id": decision_id, "sign": 2, "fix_ids": [6]}))


async def act_for(bank: Bank, user: str, actor: str) -> None:
    """Leaves a case, a reward and a review of the user that the actor brought."""
    (case_id,) = await bank.add(user, {"source": actor})
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await give_feedback(connection, user, actor, Feedback(1.0, "user", case_id=case_id))
        procedure = {"user_sub": user, "agent_key": AGENT, "id": uuids.uuid7(), "version": 1}
        await connection.execute(insert(procedures).values({**procedure, "case_id": case_id, "record": {"a": 1}}))
        said = {"user_sub": user, "procedure_id": procedure["id"], "version": 1, "verdict": "good", "actor": actor}
        await connection.execute(insert(procedure_reviews).values(said))


async def as_owner(url: str, statement: str, *values: object) -> list[Any]:
    owner = await asyncpg.connect(dsn(url))
    try:
        return list(await owner.fetch(statement, *values))
    finally:
        await owner.close()


def test_every_column_that_names_who_acted_is_among_those_that_are_renamed():
    naming = {column for table in metadata.tables.values() for column in table.c if column.name in {"actor", "source"}}
    assert naming - {rewards.c.source} == set(NAMES)  # what kind of judge gave a reward is no name


def test_every_table_with_a_user_is_among_those_that_are_emptied():
    with_a_user = {table.name for table in metadata.tables.values() if "user_sub" in table.c}
    assert {table.name for table in USER_TABLES} == with_a_user - {"erasures"}


async def test_every_table_is_emptied_of_the_user_and_of_nobody_else(bank: Bank, user: str, database_url: str):
    other = f"{user}-other"
    await fill(bank, user)
    await fill(bank, other)
    before = await bank.counts(other)
    receipt = await erase(bank.database, user)
    assert receipt.rows == before == {table.name: 1 for table in USER_TABLES}
    assert receipt.residue == {table.name: 0 for table in USER_TABLES}
    assert receipt.clean
    assert receipt.keys_destroyed == 1
    assert await bank.counts(other) == before
    for table in USER_TABLES:  # as the owner, whom row-level security hides nothing from
        assert await as_owner(database_url, f"SELECT 1 FROM {table.name} WHERE user_sub = $1", user) == []  # noqa: S608


async def test_the_tombstone_names_nobody(bank: Bank, user: str, database_url: str):
    receipt = await erase(bank.database, user)
    (stone,) = await as_owner(database_url, "SELECT * FROM erasures WHERE user_sub = $1", receipt.user_digest)
    assert receipt.user_digest == hashlib.sha256(user.encode()).hexdigest()
    assert stone["erased_at"] == receipt.erased_at
    assert json.loads(stone["receipt"]) == {"rows": receipt.rows}  # until it is issued
    assert user not in str(dict(stone))


async def test_an_unknown_user_gets_a_receipt_of_zeros_as_often_as_asked(bank: Bank, user: str):
    for _ in range(2):
        receipt = await erase(bank.database, user)
        assert set(receipt.rows.values()) == {0}
        assert receipt.keys_destroyed == 0
        assert receipt.clean


@pytest.mark.parametrize(
    "citus", [pytest.param(False, marks=one_postgres), True], ids=["one Postgres", "as on a cluster"]
)
async def test_the_name_of_who_acted_for_others_becomes_a_tombstone_in_their_rows(
    bank: Bank, user: str, database_url: str, *, citus: bool
):
    other, bystander = f"{user}-other", f"{user}-bystander"
    await act_for(bank, other, user)
    await act_for(bank, bystander, bystander)
    before = await bank.counts(other)
    receipt = await erase(replace(bank.database, citus=citus), user)
    assert receipt.renamed == {"audit.actor": 1, "rewards.actor": 1, "procedure_reviews.actor": 1, "cases.source": 1}
    assert receipt.clean
    assert await bank.counts(other) == before
    stone = f"erased:{receipt.user_digest}"
    for table, column in (
        ("audit", "actor"),
        ("rewards", "actor"),
        ("procedure_reviews", "actor"),
        ("cases", "source"),
    ):
        found = await as_owner(database_url, f"SELECT {column} AS who FROM {table} WHERE user_sub = $1", other)  # noqa: S608
        assert {row["who"] for row in found} - {"retain"} == {stone}
        assert await as_owner(database_url, f"SELECT 1 FROM {table} t WHERE {column} = $1", user) == []  # noqa: S608
    (kept,) = await bank.read(bystander, select(cases.c.source).where(cases.c.user_sub == bystander))
    assert kept.source == bystander


async def test_a_name_that_another_transaction_holds_is_waited_for(bank: Bank, user: str, database_url: str):
    other = f"{user}-other"
    await act_for(bank, other, user)
    async with bank.database.as_user(other, datetime.now(UTC)) as connection:
        reviews = select(procedure_reviews.c.actor).where(procedure_reviews.c.user_sub == other)
        await connection.execute(reviews.with_for_update())
        erasing = asyncio.create_task(erase(bank.database, user))
        named = "SELECT 1 FROM rewards WHERE actor = $1"
        await until(lambda: as_owner(database_url, named, user), [])  # the names in reviews are next, and the last
        assert not erasing.done()
    assert (await erasing).renamed["procedure_reviews.actor"] == 1


@one_postgres
async def test_an_erasure_ends_although_the_name_is_written_again_and_again(
    bank: Bank, user: str, owner: asyncpg.Connection
):
    await act_for(bank, f"{user}-other", user)
    await owner.execute(
        "CREATE FUNCTION write_again() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN"
        " NEW.id := gen_random_uuid(); NEW.actor := OLD.actor; INSERT INTO rewards VALUES (NEW.*); RETURN NULL; END $$"
    )
    again = "CREATE TRIGGER again AFTER UPDATE ON rewards FOR EACH ROW WHEN (NEW.actor <> OLD.actor)"
    await owner.execute(f"{again} EXECUTE FUNCTION write_again()")
    try:
        async with asyncio.timeout(30):
            receipt = await erase(bank.database, user)
    finally:
        await owner.execute("DROP FUNCTION write_again CASCADE")
    assert (receipt.names_left["rewards.actor"], receipt.clean) == (1, False)
    assert (await erase(bank.database, user)).clean


@one_postgres
async def test_after_an_erasure_no_statistics_know_the_user(bank: Bank, user: str, database_url: str):
    await bank.add(user, *({"task": f"task number {number}"} for number in range(30)))
    await fill(bank, f"{user}-other")
    await as_owner(database_url, "ANALYZE")
    sampled = (
        "SELECT tablename, attname FROM pg_stats WHERE schemaname = 'public'"
        " AND strpos(replace(pg_stats::text, $1 || '-', ''), $1) > 0"  # of this user, and not of the other one
    )
    assert await as_owner(database_url, sampled, user)  # or else this proves nothing
    assert await as_owner(database_url, sampled, "task number") == []
    await erase(bank.database, user)
    assert await as_owner(database_url, sampled, user) == []


async def test_the_role_that_renames_sees_and_changes_nothing_else(bank: Bank, user: str):
    other = f"{user}-other"
    await act_for(bank, other, user)
    for refused in (
        "SELECT task FROM cases",
        "SELECT payload FROM audit",
        "DELETE FROM audit",
        "UPDATE audit SET action = 'x'",
        "UPDATE erasures SET erased_at = now()",
        "DELETE FROM erasures",
        "UPDATE audit SET actor = 'somebody else'",
        "SELECT * FROM user_keys",
    ):
        with pytest.raises(DBAPIError, match=r"permission denied|row-level security"):
            async with bank.database.as_eraser_elsewhere(user) as connection:
                await connection.execute(text(refused))
    async with bank.database.as_eraser_elsewhere(f"{user}-nobody") as connection:
        for table, column in (("audit", "actor"), ("cases", "source")):
            assert (await connection.execute(text(f"SELECT {column} FROM {table}"))).all() == []  # noqa: S608


async def test_a_token_from_before_is_refused_and_a_later_one_begins_anew_with_a_new_key(
    bank: Bank,
    user: str,
    working: Worker,
):
    before = bank.author(user)
    await retain(bank.database, bank.keyring, run(), before)
    old_key = await bank.read(user, select(user_keys.c.key_id))
    receipt = await erase(bank.database, user)
    with pytest.raises(UserErased):
        await retain(bank.database, bank.keyring, run(), before)
    with pytest.raises(UserErased):
        await retain(bank.database, bank.keyring, run(), bank.author(user, receipt.erased_at))
    later = bank.author(user, receipt.erased_at + timedelta(microseconds=1))
    retained = await retain(bank.database, bank.keyring, run(), later)
    assert await bank.read(user, select(user_keys.c.key_id)) != old_key
    await until(lambda: bank.ids(user, "ready"), {retained.case_id})


async def test_another_process_that_remembers_the_old_key_works_with_the_new_one(bank: Bank, user: str):
    elsewhere = Worker(bank.database, WordLlamaEmbedder(), type(bank.keyring)(bank.keyring.master))
    for _ in range(2):
        retained = await retain(bank.database, bank.keyring, run(), bank.author(user))
        while await elsewhere.run_once():
            pass
        assert await bank.ids(user, "ready") == {retained.case_id}
        await erase(bank.database, user)


async def test_a_busy_worker_brings_nothing_back(bank: Bank, user: str, working: Worker):
    other = f"{user}-other"
    author, sent = bank.author(user), 0

    async def keep_retaining() -> None:
        nonlocal sent
        with suppress(UserErased):
            while True:
                await retain(bank.database, bank.keyring, run(sent), author)
                sent += 1

    async def keep_other() -> list[Any]:
        return [(await retain(bank.database, bank.keyring, run(n), bank.author(other))).case_id for n in range(60)]

    busy = [asyncio.create_task(keep_retaining()) for _ in range(3)]
    others = asyncio.create_task(keep_other())
    await until(lambda: has(bank, user, "ready"), expected=True)
    receipt = await erase(bank.database, user)
    await asyncio.gather(*busy)
    kept = await others
    assert receipt.rows["cases"] >= sent > 0
    assert receipt.clean
    await until(lambda: bank.ids(other, "ready"), set(kept))
    assert set((await bank.counts(user)).values()) == {0}


class Slow(WordLlamaEmbedder):
    """Embeds once the gate is open."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.embedding = asyncio.Event(), asyncio.Event()

    async def embed(self, texts: Any) -> Any:
        self.embedding.set()
        await self.gate.wait()
        return await super().embed(texts)


async def test_a_worker_that_claimed_before_the_erasure_finishes_nothing_after_it(bank: Bank, user: str):
    slow = Slow()
    await retain(bank.database, bank.keyring, run(), bank.author(user))
    late = asyncio.create_task(Worker(bank.database, slow, bank.keyring).run_once())
    await slow.embedding.wait()
    receipt = await erase(bank.database, user)
    slow.gate.set()
    await late
    assert receipt.clean
    assert set((await bank.counts(user)).values()) == {0}


async def test_a_worker_that_claimed_a_run_before_its_actor_was_erased_does_not_write_the_name_again(
    bank: Bank, user: str
):
    slow, service = Slow(), f"service-{user}"
    await retain(bank.database, bank.keyring, run(), replace(bank.author(user), actor=service))
    late = asyncio.create_task(Worker(bank.database, slow, bank.keyring).run_once())
    await slow.embedding.wait()
    receipt = await erase(bank.database, service)
    slow.gate.set()
    await late
    inserted = select(audit.c.actor).where(audit.c.user_sub == user, audit.c.action == "insert_case")
    assert [each.actor for each in await bank.read(user, inserted)] == [f"erased:{receipt.user_digest}"]


@one_postgres
async def test_the_erasure_of_an_actor_waits_for_a_worker_that_is_writing_the_name(
    bank: Bank, user: str, database_url: str
):
    service = f"service-{user}"
    worker = Worker(bank.database, WordLlamaEmbedder(), bank.keyring)
    await retain(bank.database, bank.keyring, run(1), bank.author(user))
    await worker.run_once()  # so that the user's audit has an end, which the next entry locks
    await retain(bank.database, bank.keyring, run(2), replace(bank.author(user), actor=service))
    held = await asyncpg.connect(dsn(database_url))
    async with held.transaction():
        assert await held.fetch("SELECT 1 FROM audit_heads WHERE user_sub = $1 FOR UPDATE", user)
        writing = await begin_blocked(held, worker.run_once())
        erasing = await begin_blocked(held, erase(replace(bank.database, citus=True), service), 2)  # waits at the case
    await asyncio.gather(writing, erasing)
    await held.close()
    assert await as_owner(database_url, "SELECT 1 FROM audit WHERE actor = $1", service) == []


async def test_upkeep_that_listed_the_profile_before_the_erasure_is_refused(bank: Bank, user: str):
    await fill(bank, user)
    (seen,) = [profile async for profile in each_profile(bank.database) if profile.user_sub == user]
    await erase(bank.database, user)
    with pytest.raises(UserErased):
        async with bank.database.as_user(user, seen.seen_at):
            pass
    await prune_all(bank.database, now=datetime.now(UTC))
    assert set((await bank.counts(user)).values()) == {0}


async def test_an_erasure_waits_for_a_transaction_under_way(bank: Bank, user: str, database_url: str):
    await fill(bank, user)
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        erasing = asyncio.create_task(erase(bank.database, user))
        await until(lambda: as_owner(database_url, WAITING), [(1,)])
        assert not erasing.done()
        await connection.execute(
            insert(audit).values(user_sub=user, id=uuids.uuid7(), actor="t", action="late", payload={}),
        )
    assert (await erasing).rows["audit"] == 2


async def test_the_reason_of_a_revocation_is_blanked_and_its_tokens_stay_revoked(bank: Bank, user: str):
    other = f"{user}-other"
    async with bank.database.as_worker() as connection:
        for whose in (user, other):
            await revoke(connection, Revocation(f"{whose} left", subject=whose))
            await revoke(connection, Revocation(f"{whose} lost it", f"token of {whose}", whose))
    before = await revocations_of(bank, user)
    await erase(bank.database, user)
    assert await revocations_of(bank, user) == [(*row[:-1], "") for row in before]
    assert [row[-1] for row in await revocations_of(bank, other)] == [f"{other} left", f"{other} lost it"]


async def revocations_of(bank: Bank, user: str) -> list[tuple[Any, ...]]:
    """The revocations of the user's tokens, with the reason as the last column."""
    row = token_revocations.c
    columns = select(row.jti_sha256, row.issued_before, row.revoked_at, row.expires_at, row.why)
    async with bank.database.as_worker() as connection:
        found = await connection.execute(columns.where(row.subject_sha256 == sha256(user)).order_by(row.number))
    return [tuple(each) for each in found]


SHORT_S = 2.0
"""Time that a statement may take where a test waits for its end, and a connection on a busy machine."""


@one_postgres  # a cluster takes no triggers
async def test_an_erasure_takes_as_long_as_it_needs(bank: Bank, user: str, database_url: str):
    await bank.add(user, {})
    slow = f"""
CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.user_sub = '{user}' THEN PERFORM pg_sleep({SHORT_S + 0.5}); END IF;
    RETURN OLD;
END $$
"""
    owner = await asyncpg.connect(dsn(database_url))
    await owner.execute(slow)
    await owner.execute("CREATE TRIGGER slow BEFORE DELETE ON cases FOR EACH ROW EXECUTE FUNCTION slow()")
    try:
        async with service_database(database_url, timeout_s=SHORT_S) as database:
            assert (await erase(database, user)).rows["cases"] == 1
    finally:
        await owner.execute("DROP FUNCTION slow CASCADE")
        await owner.close()


@one_postgres  # a cluster bounds no wait on its nodes
async def test_an_erasure_does_not_wait_for_ever_for_a_transaction_of_the_user(
    bank: Bank, user: str, database_url: str
):
    await bank.add(user, {})
    async with (
        bank.database.as_user(user, datetime.now(UTC)),
        service_database(database_url, timeout_s=SHORT_S) as database,
    ):
        with pytest.raises(DatabaseUnavailable):
            await erase(database, user)
    assert (await erase(bank.database, user)).rows["cases"] == 1


@one_postgres
async def test_whoever_begins_again_is_not_admitted_past_an_erasure_that_was_not_confirmed(
    bank: Bank, user: str, database_url: str
):
    confirmed = await erase(bank.database, user)
    service = Author(user, "service", confirmed.erased_at)
    owner = await asyncpg.connect(dsn(database_url))
    async with owner.transaction():
        await owner.execute("LOCK TABLE readmissions IN SHARE MODE")  # the admission waits, after its look at erasures
        beginning = await begin_blocked(owner, begin_again(bank.database, service, confirmed.erased_at))
        erasing = await begin_blocked(owner, erase(bank.database, user), 2)
    with suppress(UserErased):
        await beginning
    newer = await erasing
    (admitted,) = await owner.fetch("SELECT max(admitted_at) FROM readmissions WHERE user_sha256 = $1", sha256(user))
    await owner.close()
    assert confirmed.erased_at < admitted["max"] < newer.erased_at


async def has(bank: Bank, user: str, status: str) -> bool:
    return bool(await bank.ids(user, status))


async def until(look: Any, expected: Any) -> None:
    async with asyncio.timeout(60):
        while (found := await look()) != expected:
            assert found is not None
            await asyncio.sleep(0.01)
