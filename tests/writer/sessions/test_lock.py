"""A session that is deleted while it is read, and one with a turn that does not decrypt."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import select, update

from retrieval.database.fast_path import FastConnection, FastStatement
from retrieval.sealed import Opener
from retrieval.sessions.read import PAGE, SessionReader
from retrieval.tables.cases import cases
from retrieval.tables.sessions import turns
from retrieval.tokens import count_tokens
from tests.writer.conftest import AGENT, Bank
from tests.writer.under_way import say
from writer.retain.retain import retain
from writer.run import FinishedRun
from writer.sessions.append import append_turns
from writer.sessions.lock import delete_session
from writer.sessions.prepare import TurnsTold, prepare_turns


class Deleting(FastConnection):
    """A connection after whose first answer another request deletes the session."""

    bank: Bank

    async def all(self, statement: FastStatement[Any], parameters: Mapping[str, object]) -> Sequence[Any]:
        rows = await FastConnection.all(self, statement, parameters)
        if len(rows) == PAGE:
            async with self.bank.database.as_user(self.user_sub, datetime.now(UTC)) as connection:
                await delete_session(connection, self.bank.author(self.user_sub), "chat")
        return rows


async def test_a_session_that_is_deleted_between_two_pages_ends_with_the_first(bank: Bank, user: str):
    many = [{"role": "user", "content": f"turn {number}"} for number in range(PAGE + 20)]
    told = prepare_turns(TurnsTold.model_validate({"agent": AGENT, "turns": many}))
    await append_turns(bank.database, bank.keyring, "chat", told, bank.author(user))
    async with bank.database.fast(user, datetime.now(UTC)) as connection:
        Deleting.bank = bank
        deleting = Deleting(connection.driver, user, connection.authorised_at)
        seal_of = Opener(bank.database, bank.keyring).of_key
        view = await SessionReader(deleting, "chat", seal_of, lambda turn: count_tokens(turn.text), count_tokens).view(
            90_000
        )
    assert view is not None
    assert [turn.number for turn in view.turns] == list(range(21, PAGE + 21))
    assert view.items == []


async def test_a_turn_that_does_not_decrypt_loses_no_run_that_takes_the_others(bank: Bank, user: str):
    for text in ("one", "two", "three"):
        await say(bank, user, "chat", text)
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        second = update(turns).where(turns.c.user_sub == user, turns.c.number == 2)
        await connection.execute(second.values(payload=b"changed"))
        words = await bank.keyring.find_or_make(connection, user)
    run = FinishedRun(agent=AGENT, task="count", outcome="success", session_id="chat")
    case_id = (await retain(bank.database, bank.keyring, run, bank.author(user))).case_id
    ((sealed,),) = await bank.read(user, select(cases.c.payload).where(cases.c.user_sub == user))
    kept = words.open("payload", sealed, case_id)["turns"]
    assert [turn["content"] for turn in kept] == ["one", "three"]
