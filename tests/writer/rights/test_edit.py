"""Changes by hand: tags, a case's end, a profile's settings; each is noted, and none reaches another user's rows."""

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest
from sqlalchemy import event, func, insert, literal, select

from app.providers.wordllama import WordLlamaEmbedder
from retrieval.errors import NotFound
from retrieval.ranking.retrieved import Question
from retrieval.retrieve import Reader
from retrieval.search.candidates import CaseSearch
from retrieval.tables.audit import audit
from retrieval.tables.cases import cases
from retrieval.tables.decisions import decisions
from retrieval.tables.profiles import profiles
from tests.cluster import one_postgres
from tests.fakes.openai_server import OpenAIServer
from tests.writer.conftest import AGENT, Bank, MakeWorker, calls_on_the_loop, drain, keep, states
from writer.privacy.seal import unseal_sized
from writer.rights.edit import AT_ONCE, delete_case, set_profile, set_tags


async def test_new_tags_are_searched_for_as_well(bank: Bank, user: str):
    (case_id,) = await bank.add(user, {"task": "paint the wall", "tags": ["old"], "payload": {"tool_traces": []}})
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await set_tags(connection, bank.keyring, bank.author(user), case_id, ["new", "blue"])
    (row,) = await bank.read(user, select(cases.c.tags, cases.c.search_vector).where(cases.c.user_sub == user))
    assert row.tags == ["new", "blue"]
    assert "'blue'" in row.search_vector
    assert "'old'" not in row.search_vector


async def test_a_payload_is_decrypted_for_new_tags_beside_the_event_loop(bank: Bank, user: str):
    (case_id,) = await bank.add(user, {"payload": {"tool_traces": []}})
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        with calls_on_the_loop(unseal_sized) as callers:
            await set_tags(connection, bank.keyring, bank.author(user), case_id, ["blue"])
    assert callers == []


@pytest.mark.parametrize("taught", [False, True])
async def test_new_tags_leave_the_arguments_of_calls_out_of_the_index_and_a_given_plan_in(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str, *, taught: bool
):
    calls = [{"tool": "refund", "input": {"iban": "zanzibar"}}, {"tool": "pay", "input": {}, "output": "Error: no"}]
    calls += [{"tool": "pay", "input": {"to": "walrus"}, "output": "Error: no money"}]
    made = await keep(bank, user, "settle", tool_traces=calls, tags=["old"])
    given = await keep(bank, user, "settle again", tool_traces=calls, plan=["refund the harpist"])
    if taught:
        await drain(worker_on(server))
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        for case_id in (made, given):
            await set_tags(connection, bank.keyring, bank.author(user), case_id, ["blue"])
    found = {row.id: row.search_vector for row in await states(bank, user)}
    assert all("'blue'" in found[case_id] and "'refund'" in found[case_id] for case_id in (made, given))
    assert "'harpist'" in found[given]
    assert not [word for word in ("zanzibar", "walrus", "old") if word in found[made] + found[given]]


async def test_the_audit_has_the_number_of_the_new_tags_and_not_their_words(bank: Bank, user: str):
    (case_id,) = await bank.add(user, {"payload": {"tool_traces": []}})
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await set_tags(connection, bank.keyring, bank.author(user), case_id, ["hiv-positive", "blue"])
    (row,) = await bank.read(user, select(audit.c.payload).where(audit.c.user_sub == user))
    assert row.payload == {"tags": 2}


@pytest.mark.parametrize("before", [True, False], ids=["sealed before", "plain before"])
@pytest.mark.parametrize("sealed", [True, False], ids=["sealed", "plain"])
async def test_a_deleted_case_takes_the_query_of_its_retrieval_and_every_like_query_out_of_the_log(
    bank: Bank, user: str, *, before: bool, sealed: bool
):
    query = "I have diabetes, plan my meals"
    await bank.add(user)
    asked = [
        await retrieved(bank, user, query, seals=before),
        await retrieved(bank, user, "water the garden", seals=before),
        await retrieved(bank, user, "  i have DIABETES, plan my meals", seals=True),
        await retrieved(bank, user, query, seals=sealed),
    ]
    (case_id,) = await bank.add(user, {"task": "plan meals", "retrieval_id": asked[-1]})
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await delete_case(connection, bank.keyring, bank.author(user), case_id)
    words = select(decisions.c.id).where(decisions.c.words.is_not(None) | (decisions.c.query != ""))
    assert [row.id for row in await bank.read(user, words.where(decisions.c.user_sub == user))] == [asked[1]]


async def retrieved(bank: Bank, user: str, query: str, *, seals: bool) -> UUID:
    """Asks for memory, and returns the id of the decision, which has the query sealed or plain."""
    reader = Reader(bank.database, WordLlamaEmbedder(), seals=replace(bank.keyring, seals_words=seals))
    answer = await reader.retrieve(user, datetime.now(UTC), Question(CaseSearch(AGENT, query)))
    return answer.retrieval_id


@one_postgres
async def test_a_case_of_very_many_repeats_is_deleted_with_each_of_them_by_few_statements(bank: Bank, user: str):
    many = 2 * AT_ONCE + 100
    (case_id,) = await bank.add(user, {})
    made = {"id": func.gen_random_uuid(), "status": literal("merged"), "merged_into": literal(case_id)}
    copied = [column for column in cases.c if column.computed is None and column.identity is None]
    repeats = select(*(made.get(column.name, column) for column in copied), func.generate_series(1, many))
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        source = repeats.where(cases.c.user_sub == user).subquery()
        await connection.execute(insert(cases).from_select(copied, select(*list(source.c)[:-1])))
    named: list[int] = []
    engine = bank.database.engine.sync_engine
    event.listen(engine, "before_cursor_execute", lambda _c, _u, _s, values, *_: named.append(len(values)))
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await delete_case(connection, bank.keyring, bank.author(user), case_id)
    assert len(named) < 100
    assert max(named) < AT_ONCE + 10
    counts = await bank.counts(user)
    assert (counts["cases"], counts["audit"]) == (0, many + 1)


async def test_another_users_case_is_not_found_and_stays_as_it_was(bank: Bank, user: str):
    (case_id,) = await bank.add(user, {})
    thief = bank.author(f"{user}-b")
    for attempt in (
        lambda c: set_tags(c, bank.keyring, thief, case_id, ["mine"]),
        lambda c: delete_case(c, bank.keyring, thief, case_id),
    ):
        with pytest.raises(NotFound):
            async with bank.database.as_user(thief.user_sub, datetime.now(UTC)) as connection:
                await attempt(connection)
    assert await bank.ids(user, "ready") == {case_id}


async def test_settings_that_are_not_named_stay_and_the_change_is_noted(bank: Bank, user: str):
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await set_profile(connection, bank.author(user), AGENT, {"k": 7})
        await set_profile(connection, bank.author(user), AGENT, {"window_size": 9})
        await set_profile(connection, bank.author(user), AGENT, {})
    (row,) = await bank.read(user, select(profiles).where(profiles.c.user_sub == user))
    assert (row.k, row.window_size) == (7, 9)
    noted = await bank.read(user, select(audit.c.payload).where(audit.c.user_sub == user).order_by(audit.c.id))
    assert [entry.payload for entry in noted] == [{"k": 7}, {"window_size": 9}, {}]
