"""Export: everything of the user, nothing of anybody else, in one order."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import event, update

from app.providers.wordllama import WordLlamaEmbedder
from retrieval.tables.cases import cases
from retrieval.tables.metadata import USER_TABLES
from tests.writer.conftest import AGENT, Bank
from writer.queue.worker import Worker
from writer.retain.retain import retain
from writer.rewards.feedback import Feedback, give_feedback
from writer.rights.erase import erase
from writer.rights.export import PAGE_BYTES, PAGE_OF_CASES, export
from writer.run import FinishedRun


async def exported(bank: Bank, user: str) -> list[dict[str, Any]]:
    return [row async for row in export(bank.database, bank.keyring, user)]


async def retained(bank: Bank, user: str, word: str) -> Any:
    finished = FinishedRun(
        agent=AGENT,
        task=f"the task of {word}",
        outcome="success",
        tool_traces=[{"tool": "sql", "input": {"statement": word}, "output": word}],
        prompt_snapshot=f"be {word}",
    )
    case_id = (await retain(bank.database, bank.keyring, finished, bank.author(user))).case_id
    worker = Worker(bank.database, WordLlamaEmbedder(), bank.keyring)
    while await worker.run_once():
        pass
    async with bank.database.as_user(user, bank.author(user).authorised_at) as connection:
        await give_feedback(connection, user, "test", Feedback(0.5, "user", case_id=case_id))
    return case_id


async def test_everything_of_the_user_comes_out_unsealed_and_nothing_of_another(bank: Bank, user: str):
    other = f"{user}-other"
    case_id = await retained(bank, user, "walrus")
    await retained(bank, other, "penguin")
    rows = await exported(bank, user)
    counted = {table.name: sum(row["type"] == table.name for row in rows) for table in USER_TABLES}
    assert counted == await bank.counts(user)
    (case,) = [row for row in rows if row["type"] == "cases"]
    assert case["id"] == str(case_id)
    assert case["payload"]["tool_traces"][0]["input"] == {"statement": "walrus"}
    assert case["payload"]["prompt_snapshot"] == "be walrus"
    assert {row["user_sub"] for row in rows} == {user}
    assert "penguin" not in json.dumps(rows)


async def test_the_vectors_come_with_their_model_and_dimension(bank: Bank, user: str):
    await retained(bank, user, "walrus")
    (vector,) = [row for row in await exported(bank, user) if row["type"] == "case_embeddings"]
    assert (vector["model"], vector["dimension"]) == (WordLlamaEmbedder.model, 256)
    assert len(vector["embedding"]) == 256
    assert sum(number**2 for number in vector["embedding"]) == pytest.approx(1, abs=1e-4)


async def test_no_key_leaves_the_bank(bank: Bank, user: str):
    await retained(bank, user, "walrus")
    (key,) = [row for row in await exported(bank, user) if row["type"] == "user_keys"]
    assert set(key) == {"type", "user_sub", "key_id", "created_at"}


async def test_no_hash_of_a_request_leaves_the_bank(bank: Bank, user: str):
    await retained(bank, user, "walrus")
    (case,) = [row for row in await exported(bank, user) if row["type"] == "cases"]
    assert "request_hash" not in case


async def test_pages_lose_and_double_nothing_and_two_exports_are_equal(bank: Bank, user: str):
    ids = await bank.add(user, *({} for _ in range(2 * PAGE_OF_CASES + 1)))
    rows = await exported(bank, user)
    assert [row["id"] for row in rows if row["type"] == "cases"] == sorted(str(case_id) for case_id in ids)
    assert await exported(bank, user) == rows


async def test_a_page_of_large_rows_has_fewer_of_them(bank: Bank, user: str):
    ids = await bank.add(user, *({} for _ in range(5)))
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        large = update(cases).where(cases.c.user_sub == user).values(payload=bytes(PAGE_BYTES // 2))
        await connection.execute(large)
    fetched = list[int]()
    event.listen(
        bank.database.engine.sync_engine,
        "after_cursor_execute",
        lambda _c, cursor, sql, *_: fetched.append(cursor.rowcount) if "cases.payload" in sql else None,
    )
    rows = await exported(bank, user)
    assert {row["id"] for row in rows if row["type"] == "cases"} == set(map(str, ids))
    assert max(fetched) == 2


async def test_parents_come_before_their_children(bank: Bank, user: str):
    await retained(bank, user, "walrus")
    types = list(dict.fromkeys(row["type"] for row in await exported(bank, user)))
    assert types == [table.name for table in reversed(USER_TABLES) if table.name in types]


async def test_an_unknown_or_erased_user_exports_nothing(bank: Bank, user: str):
    assert await exported(bank, user) == []
    await retained(bank, user, "walrus")
    await erase(bank.database, user)
    assert await exported(bank, user) == []


async def test_a_row_that_cannot_be_read_comes_as_it_is_and_keeps_back_no_other(bank: Bank, user: str):
    bad, good = await bank.add(user, {"words": b"cut"}, {})
    cases = {row["id"]: row for row in await exported(bank, user) if row["type"] == "cases"}
    assert cases[str(bad)]["unreadable"] is True
    assert cases[str(bad)]["words"] == b"cut".hex()
    assert "unreadable" not in cases[str(good)]
