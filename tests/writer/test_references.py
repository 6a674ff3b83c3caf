"""References to rows that go become null, whoever deletes the rows, and nothing else of the referring rows changes."""

import asyncio
from datetime import UTC, datetime, timedelta
from uuid import UUID

import asyncpg
import pytest
import uuid_utils.compat as uuids
from sqlalchemy import Column, Row, Table, delete, insert, select

from retrieval.tables.cases import cases
from retrieval.tables.decisions import decisions
from retrieval.tables.failures import advice
from retrieval.tables.memories import facts
from retrieval.tables.metadata import metadata
from retrieval.tables.profiles import profiles
from retrieval.tables.runs import runs
from retrieval.tables.sessions import sessions
from tests.writer.blocked import begin_blocked
from tests.writer.conftest import AGENT, Bank
from writer.references import REFERENCES, clear_references
from writer.retain.under_way import lock_run, take_back
from writer.rights.edit import delete_case, delete_decision
from writer.rights.erase import erase
from writer.sessions.lock import delete_session
from writer.upkeep.prune import prune

LONG_AGO = datetime.now(UTC) - timedelta(days=400)


class Web:
    """One row of each table, which refer to each other in every way that there is."""

    def __init__(self, bank: Bank, user: str) -> None:
        self.bank, self.user = bank, user
        self.ids: dict[Table, UUID] = {}

    async def add(self, table: Table, **values: object) -> UUID:
        self.ids[table] = uuids.uuid7()
        row = {"user_sub": self.user, _id(table).name: self.ids[table], "agent_key": AGENT, **values}
        async with self.bank.database.as_user(self.user, datetime.now(UTC)) as connection:
            await connection.execute(insert(table).values(row))
        return self.ids[table]

    async def row(self, table: Table, id_: UUID) -> Row[tuple[object, ...]]:
        (row,) = await self.bank.read(self.user, select(table).where(table.c.user_sub == self.user, _id(table) == id_))
        return row


def _id(table: Table) -> Column[UUID]:
    return table.c.decision_id if table is advice else table.c.id


@pytest.fixture
async def web(bank: Bank, user: str) -> Web:
    made = Web(bank, user)
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        key_id = (await bank.keyring.find_or_make(connection, user)).key_id
        await connection.execute(
            insert(profiles).values(user_sub=user, agent_key=AGENT, session_ttl_days=30, ttl_days=30)
        )
    decision = await made.add(
        decisions,
        created_at=LONG_AGO,
        query="",
        mode="hybrid",
        degraded=[],
        policy_version="",
        feature_version=1,
        seed=0,
        candidate_ids=[],
        features=b"",
        scores=[],
        tokens=0,
        arm="default",
        k=4,
        slate_propensity=1,
        candidate_groups=[],
        candidate_sources=[],
    )
    session = await made.add(sessions, name="talk", key_id=key_id, last_turn_at=LONG_AGO)
    gone = {"status": "pruned", "pruned_at": LONG_AGO, "created_at": LONG_AGO}
    (made.ids[cases],) = await bank.add(user, {"retrieval_id": decision, "session_id": session, **gone})
    ended = {"status": "aborted", "ended_at": datetime.now(UTC), "case_id": made.ids[cases]}
    await made.add(runs, key_id=key_id, words=b"", **ended)
    told = {"kind": "fact", "key_id": key_id, "words": b"", "origin": "turn", "valid_from": LONG_AGO}
    newer = await made.add(facts, said=b"2", last_told_at=LONG_AGO, **told)
    places = {"session_id": session, "case_id": made.ids[cases], "superseded_by": newer}
    await made.add(facts, said=b"1", **told, **places)
    await made.add(advice, decision_id=decision, sign=1, session_id=session)
    made.ids |= {decisions: decision, advice: decision}
    return made


@pytest.mark.parametrize("column", [each for columns in REFERENCES.values() for each in columns], ids=str)
async def test_a_cleared_reference_is_null_and_the_rest_of_its_row_stays(web: Web, column: Column[UUID]):
    table = next(each for each, columns in REFERENCES.items() if column in columns)
    before = await web.row(column.table, web.ids[column.table])
    target = getattr(before, column.name)
    assert target is not None
    async with web.bank.database.as_user(web.user, datetime.now(UTC)) as connection:
        await clear_references(table, connection, web.user, [target])
    after = await web.row(column.table, web.ids[column.table])
    changed = {column.name: None, "updated_at": after.updated_at} if column.table is cases else {column.name: None}
    assert after._asdict() == {**before._asdict(), **changed}


async def test_a_deleted_session_leaves_no_reference(web: Web):
    async with web.bank.database.as_user(web.user, datetime.now(UTC)) as connection:
        await delete_session(connection, web.bank.author(web.user), "talk")
    assert (await web.row(cases, web.ids[cases])).session_id is None
    assert (await web.row(advice, web.ids[advice])).session_id is None
    assert (await web.bank.counts(web.user))["sessions"] == 0


async def test_a_deleted_decision_leaves_no_reference(web: Web):
    async with web.bank.database.as_user(web.user, datetime.now(UTC)) as connection:
        await delete_decision(connection, web.bank.author(web.user), web.ids[decisions])
    assert (await web.row(cases, web.ids[cases])).retrieval_id is None


async def test_a_deleted_case_leaves_no_reference(web: Web):
    async with web.bank.database.as_user(web.user, datetime.now(UTC)) as connection:
        await delete_case(connection, web.bank.keyring, web.bank.author(web.user), web.ids[cases])
    assert (await web.row(runs, web.ids[runs])).case_id is None


async def test_the_case_of_a_run_that_goes_on_leaves_no_reference(web: Web):
    async with web.bank.database.as_user(web.user, datetime.now(UTC)) as connection:
        run = await lock_run(connection, web.user, web.ids[runs])
        assert run is not None
        await take_back(connection, web.bank.author(web.user), run)
    assert (await web.row(runs, web.ids[runs])).case_id is None
    assert (await web.row(facts, web.ids[facts])).case_id is None


async def test_what_is_pruned_leaves_no_reference(web: Web):
    pruned = await prune(web.bank.database, web.bank.profile(web.user), now=datetime.now(UTC))
    assert [pruned[name] for name in ("hard", "decisions", "sessions", "facts")] == [1, 1, 1, 1]
    fact = await web.row(facts, web.ids[facts])
    assert (fact.case_id, fact.session_id, fact.superseded_by) == (None, None, None)
    assert (await web.row(runs, web.ids[runs])).case_id is None


async def test_an_erased_user_leaves_no_row(web: Web):
    assert (await erase(web.bank.database, web.user)).clean


async def test_a_deletion_that_leaves_a_reference_is_refused(web: Web):
    with pytest.raises(Exception, match="violates foreign key"):
        async with web.bank.database.as_user(web.user, datetime.now(UTC)) as connection:
            await connection.execute(delete(sessions).where(sessions.c.user_sub == web.user))
    assert (await web.bank.counts(web.user))["sessions"] == 1


async def test_a_run_that_ends_while_its_retrieval_is_deleted_is_kept_without_it(web: Web, owner: asyncpg.Connection):
    late = uuids.uuid7()

    async def forget() -> None:
        async with web.bank.database.as_user(web.user, datetime.now(UTC)) as connection:
            await delete_decision(connection, web.bank.author(web.user), web.ids[decisions])

    again = "INSERT INTO cases SELECT (jsonb_populate_record(c, jsonb_build_object('id', $2::uuid))).* FROM cases c"
    async with asyncio.timeout(60):
        async with owner.transaction():
            await owner.execute(f"{again} WHERE user_sub = $1", web.user, late)
            deletion = await begin_blocked(owner, forget())
        await deletion
    assert (await web.row(cases, late)).retrieval_id is None


def test_every_reference_that_does_not_go_with_its_row_is_known():
    kept = {
        (constraint.referred_table, constraint.columns.values()[-1])
        for table in metadata.sorted_tables
        for constraint in table.foreign_key_constraints
        if constraint.ondelete is None and constraint.columns.values()[-1].nullable
    }
    assert kept == {(table, column) for table, columns in REFERENCES.items() for column in columns}
    assert {each.ondelete for table in metadata.sorted_tables for each in table.foreign_key_constraints} == {
        None,
        "CASCADE",
    }
