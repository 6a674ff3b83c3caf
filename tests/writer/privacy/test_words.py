"""Words that are sealed: nobody reads them in the database, and everybody who may reads them as if they were not."""

import os
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
import uuid_utils.compat as uuids
from sqlalchemy import select, update

from app.providers.wordllama import WordLlamaEmbedder
from retrieval.errors import SealBroken
from retrieval.ranking.retrieved import Question
from retrieval.retrieve import Reader
from retrieval.search.candidates import CaseSearch
from retrieval.tables.cases import cases
from retrieval.tables.decisions import decisions
from tests.writer.conftest import AGENT, Bank, drain
from writer.privacy.keys import Keyring
from writer.privacy.words import Words
from writer.queue.worker import Worker
from writer.retain.retain import retain
from writer.rights.erase import erase
from writer.rights.export import export
from writer.run import FinishedRun
from writer.training.decision_log import read
from writer.upkeep.reembed import reembed
from writer.upkeep.reseal import reseal_all

TASK, PLAN, ASKED = "string the old harp", ["loosen Quendel pegs", "wind gut"], "how do I string a harp"


@pytest.fixture
def sealing(bank: Bank) -> Bank:
    """A bank whose words are sealed."""
    return Bank(bank.database, Keyring(bank.keyring.master, seals_words=True))


def words_of(user: str) -> Words:
    return Words(user, uuids.uuid7(), os.urandom(32))


async def keep(bank: Bank, user: str, task: str = TASK, plan: list[str] | None = None) -> UUID:
    run = FinishedRun(agent=AGENT, task=task, plan=PLAN if plan is None else plan, outcome="success", tags=["music"])
    return (await retain(bank.database, bank.keyring, run, bank.author(user))).case_id


def worker_of(bank: Bank) -> Worker:
    return Worker(bank.database, WordLlamaEmbedder(), bank.keyring)


def reader_of(bank: Bank) -> Reader:
    return Reader(bank.database, WordLlamaEmbedder(), seals=bank.keyring)


async def ask(reader: Reader, user: str, query: str = ASKED) -> Any:
    return await reader.retrieve(user, datetime.now(UTC), Question(CaseSearch(AGENT, query)))


async def rows(bank: Bank, user: str, table: Any) -> list[Any]:
    return await bank.read(user, select(table).where(table.c.user_sub == user).order_by(table.c.id))


def test_numbers_of_texts_need_the_key_and_differ_by_kind():
    words, other = words_of("alice"), words_of("bob")
    numbers = words.numbers("move", ["tool:refund", "tool:ship", "tool:refund", "\ud800", ""])
    assert numbers[0] == numbers[2]
    assert len(set(numbers)) == 4
    assert all(-(2**31) <= number < 2**31 for number in numbers)
    assert Words("alice", words.key_id, words.key).numbers("move", ["tool:refund"]) == numbers[:1]
    assert other.numbers("move", ["tool:refund"]) != numbers[:1]
    assert words.numbers("word", ["tool:refund"]) != numbers[:1]
    assert words.numbers("move", []) == []


def test_words_open_for_their_own_user_and_row_alone():
    words, other, case_id = words_of("alice"), words_of("bob"), uuids.uuid7()
    sealed = words.seal_case(case_id, TASK, PLAN, [])
    blob = sealed["words"]
    assert isinstance(blob, bytes)
    said = words.open_case(case_id, blob)
    assert (said.task, said.plan) == (TASK, PLAN)
    for stranger, row in ((words, uuids.uuid7()), (other, case_id), (Words("bob", words.key_id, words.key), case_id)):
        with pytest.raises(SealBroken):
            stranger.open_case(row, blob)
    with pytest.raises(SealBroken):  # nor do they pass for another kind of words
        words.open_query({"id": case_id, "words": blob})


def test_equal_steps_of_a_user_share_a_token_and_nobody_elses_do():
    words, other = words_of("alice"), words_of("bob")
    assert words.token("Wind  gut") == words.token("wind gut") != words.token("wind wire")
    assert words.token("wind gut") != other.token("wind gut")
    assert words.group_of(" How?") == words.group_of("how?") != other.group_of("how?")


async def test_nothing_of_a_sealed_case_or_query_but_the_index_is_in_plain(sealing: Bank, user: str):
    await keep(sealing, user)
    await drain(worker_of(sealing))
    await ask(reader_of(sealing), user)
    (case,), (decision,) = await rows(sealing, user, cases), await rows(sealing, user, decisions)
    assert (case.task, case.search_text, decision.query, decision.rewritten) == ("", "", "", None)
    assert len(case.plan) == len(PLAN)
    stored = str({name: value for name, value in case._mapping.items() if name != "search_vector"})  # noqa: SLF001
    for word in ("harp", "Quendel", "gut"):
        assert word not in stored
        assert word not in str(decision)


async def test_sealed_and_plain_cases_are_found_shown_and_told_alike(bank: Bank, sealing: Bank, user: str):
    plain = await keep(bank, user, "string the old harp of the tower", ["fetch a ladder"])
    sealed = await keep(sealing, user)
    await drain(worker_of(sealing))
    for writer in (bank, sealing):
        answered = await ask(reader_of(writer), user)
        found = {choice.row.id: (choice.row.task, choice.row.plan) for choice in answered.choices}
        assert found == {plain: ("string the old harp of the tower", ["fetch a ladder"]), sealed: (TASK, PLAN)}
        assert TASK in answered.context.text
        assert "Quendel" in answered.context.text


def test_steps_that_stand_for_effects_are_sealed_and_names_of_tools_are_not():
    words, case_id = words_of("alice"), uuids.uuid7()
    row = {"id": case_id, **words.seal_case(case_id, TASK, PLAN, [*PLAN, "winder"])}
    assert row["effects"] == [words.token(PLAN[0]), words.token(PLAN[1]), "winder"]
    assert words.opened(row)["effects"] == [*PLAN, "winder"]


async def test_what_was_done_counts_alike_whether_or_not_it_is_sealed(bank: Bank, sealing: Bank, user: str):
    for number in range(6):
        await keep(bank, user, f"string the harp of room {number}", [f"fetch harp {number}", "wind gut"])
    await drain(worker_of(bank))
    reader = reader_of(bank)
    for _ in range(3):  # the first ones ask for the vectors of what was done
        plain = await ask(reader, user)
    await reseal_all(sealing.database, sealing.keyring)
    sealed = await ask(reader, user)
    assert [choice.row.id for choice in sealed.choices] == [choice.row.id for choice in plain.choices]
    for place in range(len(plain.choices)):
        then, now = ({name: value or 0.0 for name, value in each.terms(place).items()} for each in (plain, sealed))
        assert now == pytest.approx(then, rel=1e-3, abs=0.01)  # a little older


async def test_runs_that_repeat_each_other_merge_although_their_words_are_sealed(sealing: Bank, user: str):
    first = await keep(sealing, user)
    await drain(worker_of(sealing))
    await keep(sealing, user, TASK.upper())  # the same words
    await keep(sealing, user, f"{TASK}!")  # nearly the same task, by its vector, and the same plan
    await keep(sealing, user, TASK, ["another way"])
    await drain(worker_of(sealing))
    merged = [row.status for row in await rows(sealing, user, cases) if row.merged_into == first]
    assert merged == ["merged", "merged"]
    assert len(await sealing.ids(user, "ready")) == 2


async def test_an_export_has_the_words_whatever_their_form(bank: Bank, sealing: Bank, user: str):
    await keep(bank, user, "a plain task")
    await keep(sealing, user)
    await drain(worker_of(sealing))
    await ask(reader_of(bank), user, "a plain query")
    await ask(reader_of(sealing), user)
    exported = [row async for row in export(bank.database, bank.keyring, user)]
    assert [row["task"] for row in exported if row["type"] == "cases"] == ["a plain task", TASK]
    assert [row["query"] for row in exported if row["type"] == "decisions"] == ["a plain query", ASKED]
    assert not any("words" in row for row in exported if row["type"] in {"cases", "decisions"})


async def test_training_groups_equal_queries_although_they_are_sealed(sealing: Bank, user: str):
    await keep(sealing, user)
    await drain(worker_of(sealing))
    for query in (ASKED, ASKED.upper(), "string a new harp"):
        await ask(reader_of(sealing), user, query)
    async with sealing.database.as_user(user, datetime.now(UTC)) as connection:
        log = await read(connection, user, AGENT)
    groups = [entry.group for entry in log]
    assert len(groups) == 3
    assert len(set(groups)) == 2


async def test_a_sealed_bank_is_embedded_anew_with_its_words(sealing: Bank, user: str):
    class Renamed(WordLlamaEmbedder):
        model = "another-space"

    await keep(sealing, user)
    await drain(worker_of(sealing))
    assert await reembed(sealing.database, Renamed(), sealing.profile(user), sealing.keyring) == 1
    answered = await Reader(sealing.database, Renamed(), seals=sealing.keyring).retrieve(
        user, datetime.now(UTC), Question(CaseSearch(AGENT, TASK))
    )
    assert answered.choices[0].row.similarity > 0.99


async def test_resealing_goes_either_way_and_changes_nothing_that_is_read(bank: Bank, sealing: Bank, user: str):
    await keep(bank, user)
    await drain(worker_of(bank))
    await ask(reader_of(bank), user)
    before, log = await rows(bank, user, cases), await rows(bank, user, decisions)
    assert await reseal_all(sealing.database, sealing.keyring) >= 2
    assert await reseal_all(sealing.database, sealing.keyring) == 0
    ((case,), (decision,)) = await rows(bank, user, cases), await rows(bank, user, decisions)
    assert (case.task, decision.query) == ("", "")
    assert case.search_vector == before[0].search_vector
    (choice,) = (await ask(reader_of(sealing), user)).choices
    assert (choice.row.task, choice.row.plan) == (TASK, PLAN)
    assert await reseal_all(bank.database, bank.keyring) >= 2
    assert await rows(bank, user, cases) == before
    assert (await rows(bank, user, decisions))[0] == log[0]


async def test_a_case_that_does_not_decrypt_keeps_no_other_row_sealed(bank: Bank, sealing: Bank, user: str):
    damaged, whole = await keep(sealing, user), await keep(sealing, user, "tune the old harp")
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        mine = update(cases).where(cases.c.user_sub == user, cases.c.id == damaged)
        await connection.execute(mine.values(words=b"damaged"))
    await ask(reader_of(sealing), user)
    await reseal_all(bank.database, bank.keyring)
    assert {row.id for row in await rows(bank, user, cases) if row.words is None} == {whole}
    assert [row.query for row in await rows(bank, user, decisions)] == [ASKED]


async def test_a_process_that_remembers_the_key_of_an_erased_user_reads_and_logs_with_the_new_one(
    sealing: Bank, user: str
):
    elsewhere = reader_of(Bank(sealing.database, Keyring(sealing.keyring.master, seals_words=True)))
    before, after = "string the harp before tea", "string the harp after tea"
    for query in (before, after):
        await keep(sealing, user)
        await drain(worker_of(sealing))
        answered = await ask(elsewhere, user, query)
        assert [choice.row.task for choice in answered.choices] == [TASK]
        if query == before:
            await erase(sealing.database, user)
            sealing.keyring.forget(user)
    words = await sealing_key(sealing, user)
    logged = [words.open_query(row._mapping)["query"] for row in await rows(sealing, user, decisions)]  # noqa: SLF001
    assert logged == [after]


async def test_words_that_would_be_sealed_with_a_lost_key_are_not_kept_and_the_next_ones_are(sealing: Bank, user: str):
    elsewhere = reader_of(Bank(sealing.database, Keyring(sealing.keyring.master, seals_words=True)))
    await ask(elsewhere, user)  # of an agent that is not known: a key is made all the same
    await erase(sealing.database, user)
    sealing.keyring.forget(user)
    await sealing_key(sealing, user)
    await ask(elsewhere, user, "lost")
    await ask(elsewhere, user, "kept")
    lost, kept = await rows(sealing, user, decisions)
    assert (lost.query, lost.words) == ("", None)
    assert (await sealing_key(sealing, user)).open_query(kept._mapping)["query"] == "kept"  # noqa: SLF001


async def sealing_key(bank: Bank, user: str) -> Words:
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        return await bank.keyring.find_or_make(connection, user)
