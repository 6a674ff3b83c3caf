"""A decision is logged by the names of its columns, and nothing else."""

from dataclasses import replace
from datetime import UTC, datetime

import asyncpg
import pytest

from app.postgres.pools import dsn
from retrieval.ranking.decisions import COLUMNS, log_decision
from retrieval.retrieve import Reader
from tests.cluster import one_postgres
from tests.retrieval.conftest import EMBEDDER, ask, ids, logged, slates, walls
from tests.writer.blocked import begin_blocked
from tests.writer.conftest import Bank
from tests.writer.under_way import say
from writer.privacy.keys import Keyring
from writer.rights.edit import delete_case
from writer.rights.erase import erase
from writer.upkeep.reembed import reembed


def test_the_statement_takes_what_an_entry_has_and_who_enters():
    entry = {*COLUMNS, "case_ids", "propensities", "key_id", "quoted_ids", "quoted_sessions", "authorised_at"}
    assert log_decision().arguments(dict.fromkeys(entry))
    for name in entry:
        with pytest.raises(KeyError, match=name):
            log_decision().arguments(dict.fromkeys(entry - {name}))


@one_postgres
async def test_a_cluster_logs_row_by_row_what_one_statement_logs(bank: Bank, user: str):
    await walls(bank, user)
    for citus in (False, True):
        database = replace(bank.database, citus=citus)
        await ask(Reader(database, EMBEDDER, seals=replace(bank.keyring, seals_words=True)), user)
    one, other = await logged(bank, user)
    same = set(COLUMNS) - {"id", "seed", "words", "told"}  # words are sealed for the row
    assert {name: getattr(one, name) for name in same} == {name: getattr(other, name) for name in same}
    assert None not in {one.words, one.told, other.words, other.told}
    first, second = (await slates(bank, user)).values()
    assert [slot[2:] for slot in first] == [slot[2:] for slot in second] != []


async def test_a_cluster_keeps_no_words_that_another_key_sealed(bank: Bank, user: str):
    await walls(bank, user)
    seals = Keyring(bank.keyring.master, seals_words=True)
    reader = Reader(replace(bank.database, citus=True), EMBEDDER, seals=seals)
    await ask(reader, user)
    await erase(bank.database, user)  # the reader's keyring remembers the key
    await ask(reader, user)
    (entry,) = await logged(bank, user)
    assert (entry.words, entry.told) == (None, None)


@one_postgres
@pytest.mark.parametrize("citus", [False, True])
async def test_a_retrieve_that_read_a_case_before_its_deletion_keeps_no_text_of_it(
    bank: Bank, user: str, database_url: str, *, citus: bool
):
    await walls(bank, user)
    await bank.add(user, {"task": "paint the wall", "plan": ["wait"], "outcome": "failure", "reward": 0.0})
    await reembed(bank.database, EMBEDDER, bank.profile(user))
    await say(bank, user, "garden", "I like blue.")
    reader = Reader(replace(bank.database, citus=citus), EMBEDDER, seals=bank.keyring)
    first = await ask(reader, user)
    owner = await asyncpg.connect(dsn(database_url))
    for case_id in (ids(first)[0], first.others[0].id):
        async with owner.transaction():
            await owner.execute("LOCK TABLE turns")  # a retrieve reads them after the cases
            asking = await begin_blocked(owner, ask(reader, user, session="garden"))
            async with bank.database.as_user(user, datetime.now(UTC)) as connection:
                await delete_case(connection, bank.keyring, bank.author(user), case_id)
        found = await asking
        assert case_id in [*ids(found), *(row.id for row in found.others)]
    await owner.close()
    assert [entry.told for entry in await logged(bank, user)] == [None, None, None]
