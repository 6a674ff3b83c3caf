"""The worker with a model that summarises sessions: neither cases nor other users wait for several answers."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from uuid import UUID

from pydantic import JsonValue
from sqlalchemy import update

from app.providers.wordllama import WordLlamaEmbedder
from retrieval.errors import Tokens
from retrieval.ports import Answer, Reply
from retrieval.tables.sessions import turns
from tests.writer.conftest import AGENT, Bank, drain, keep
from writer.procedures.llm.token_budget import Account
from writer.queue.summarist import MOST_TURNS, Summarist
from writer.queue.worker import Worker
from writer.sessions.append import append_turns
from writer.sessions.prepare import TurnsTold, prepare_turns


@dataclass
class Silent:
    """A model that finds nothing to say of a session, after something else has happened."""

    meanwhile: Callable[[], Awaitable[None]]
    read: list[str] = field(default_factory=list)

    async def ask(self, _instructions: str, material: JsonValue, answer: type[Answer]) -> Reply[Answer]:
        assert isinstance(material, dict)
        self.read.append(str(material["turns"]).partition("chapter of ")[2].split()[0])
        await self.meanwhile()
        return Reply(answer.model_validate({"lines": []}), Tokens())


async def talk(bank: Bank, user: str, name: str) -> None:
    """Says enough in a session for a summary to be due, in a profile that wants the model's."""
    said = [{"role": "user", "content": f"chapter of {name} " + "blah " * 100} for _ in range(12)]
    told = TurnsTold.model_validate({"agent": AGENT, "turns": said})
    await append_turns(bank.database, bank.keyring, name, prepare_turns(told), bank.author(user))
    await bank.set_profile(user, session_summary="llm")


def worker(bank: Bank, model: Silent) -> Worker:
    summarist = Summarist(bank.database, bank.keyring, model, Account(bank.database, 10**9))
    return Worker(bank.database, WordLlamaEmbedder(), bank.keyring, summarist=summarist)


async def test_a_case_is_found_before_the_model_is_asked_about_another_session(bank: Bank, user: str):
    seen: list[set[UUID]] = []
    later: list[UUID] = []

    async def look() -> None:
        seen.append(await bank.ids(user, "ready"))
        if not later:
            later.append(await keep(bank, user, "sweep the yard"))

    for name in ("attic", "cellar"):
        await talk(bank, user, name)
    await drain(worker(bank, Silent(look)))
    assert seen == [set(), set(later)]


async def test_users_take_turns_with_the_model(bank: Bank, user: str):
    async def nothing() -> None:
        pass

    for name in ("attic", "cellar", "garage"):
        await talk(bank, user, name)
    await talk(bank, f"{user}-guest", "guestroom")
    model = Silent(nothing)
    await drain(worker(bank, model))
    assert model.read == ["attic", "guestroom", "cellar", "garage"]


async def test_the_user_who_waits_longest_comes_first_whatever_the_name(bank: Bank, user: str):
    async def nothing() -> None:
        pass

    for name in ("c", "a", "b"):
        await talk(bank, f"{name}-{user}", name)
    model = Silent(nothing)
    await drain(worker(bank, model))
    assert model.read == ["c", "a", "b"]


async def test_a_turn_that_cannot_be_read_keeps_no_session_from_its_summary(bank: Bank, user: str):
    async def nothing() -> None:
        pass

    await talk(bank, user, "attic")
    async with bank.database.as_user(user, bank.author(user).authorised_at) as connection:
        broken = turns.c.user_sub == user, turns.c.number == 1
        await connection.execute(update(turns).where(*broken).values(payload=b"changed"))
    model = Silent(nothing)
    await drain(worker(bank, model))
    assert model.read == ["attic"]


async def test_a_session_of_many_turns_of_few_words_is_summarised(bank: Bank, user: str):
    async def nothing() -> None:
        pass

    first, later = ({"role": "user", "content": content} for content in ("chapter of attic now", "ok"))
    for said in ([first, *[later] * (MOST_TURNS - 1)], [later] * 50):
        told = TurnsTold.model_validate({"agent": AGENT, "turns": said})
        await append_turns(bank.database, bank.keyring, "attic", prepare_turns(told), bank.author(user))
    await bank.set_profile(user, session_summary="llm")
    model = Silent(nothing)
    await drain(worker(bank, model))
    assert set(model.read) == {"attic"}
