"""A session that is deleted while it is read."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from retrieval.database.fast_path import FastConnection, FastStatement
from retrieval.sealed import Opener
from retrieval.sessions.read import PAGE, SessionReader
from retrieval.tokens import count_tokens
from tests.writer.conftest import AGENT, Bank
from writer.privacy.words import WordSeals
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
    turns = [{"role": "user", "content": f"turn {number}"} for number in range(PAGE + 20)]
    told = prepare_turns(TurnsTold.model_validate({"agent": AGENT, "turns": turns}))
    await append_turns(bank.database, bank.keyring, "chat", told, bank.author(user))
    async with bank.database.fast(user, datetime.now(UTC)) as connection:
        Deleting.bank = bank
        deleting = Deleting(connection.driver, user, connection.authorised_at)
        seal_of = Opener(bank.database, WordSeals(bank.keyring)).of_key
        view = await SessionReader(deleting, "chat", seal_of, lambda turn: count_tokens(turn.text), count_tokens).view(
            90_000
        )
    assert view is not None
    assert [turn.number for turn in view.turns] == list(range(21, PAGE + 21))
    assert view.items == []
