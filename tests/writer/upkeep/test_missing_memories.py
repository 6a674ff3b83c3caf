"""Turns and facts from before there was recall are found once they are backfilled: all of them, each once."""

import asyncio
from uuid import uuid4

import pytest
from typer.testing import CliRunner

from app.cli import cli
from tests.service import AGENT, Service, User, alice, service  # noqa: F401 - the fixtures of the service
from writer.upkeep.missing_memories import BATCH, remember_all

PIANO = "The piano in the hall needs tuning."
FACT = "I play the piano."


async def say(user: User, session: str, texts: list[str]) -> None:
    turns = [{"role": "user", "content": text} for text in texts]
    for first in range(0, len(turns), 200):
        body = {"agent": AGENT, "turns": turns[first : first + 200]}
        answer = await user.http.post(f"/v1/sessions/{session}/turns", json=body)
        assert answer.status_code == 200, answer.text


async def found(user: User) -> set[tuple[str, str]]:
    answer = await user.http.post("/v1/recall", json={"agent": AGENT, "query": "piano"})
    memories = answer.json()["memories"]  # a turn comes with those that followed it
    return {(each["kind"], each["text"]) for each in memories if "piano" in each["text"]}


async def forget(user: User, which: str = "true") -> None:
    """Leaves the user's rows as an older version wrote them."""
    await user.rows(f"DELETE FROM memories WHERE user_sub = :user_sub AND {which} RETURNING id")  # noqa: S608 - ours


async def count(user: User) -> int:
    ((counted,),) = await user.rows("SELECT count(*) FROM memories WHERE user_sub = :user_sub")
    return int(counted)


@pytest.fixture
async def old(alice: User) -> User:  # noqa: F811 - the fixture
    """A user with more turns than a batch, of which the first says nothing, and a fact."""
    await say(alice, f"chat {uuid4()}", ["", PIANO, *(f"Number {number}." for number in range(BATCH))])
    fact = {"agent": AGENT, "kind": "fact", "text": FACT}
    assert (await alice.http.post("/v1/facts", json=fact)).status_code == 201
    return alice


async def test_what_was_stored_without_memories_is_found_after_the_command(
    old: User,
    service: Service,  # noqa: F811 - the fixture
    monkeypatch: pytest.MonkeyPatch,
):
    await forget(old)
    assert await found(old) == set()
    monkeypatch.setenv("CASEBANK_HOME", str(service.settings.home))
    monkeypatch.setenv("DATABASE_URL", str(service.settings.database_url))
    monkeypatch.setenv("CASEBANK_MASTER_KEY", service.settings.master_key_bytes.hex())
    done = await asyncio.to_thread(CliRunner().invoke, cli, ["backfill", "--memories"])
    assert (done.exit_code, f"{BATCH + 2} turns and facts" in done.stdout) == (0, True), done.output
    assert await found(old) == {("turn", PIANO), ("fact", FACT)}
    again = await asyncio.to_thread(CliRunner().invoke, cli, ["backfill", "--memories"])
    assert "0 turns and facts" in again.stdout


async def test_it_goes_on_where_it_was_broken_off_and_two_at_once_do_nothing_twice(old: User):
    whole = await count(old)
    await forget(old, "(turn_number IS NULL OR turn_number % 3 > 0)")
    runtime = old.service.runtime
    done = await asyncio.gather(*(remember_all(runtime.database, runtime.keyring) for _ in range(2)))
    assert await count(old) == whole == BATCH + 2
    assert sum(done) > BATCH // 2
    assert await found(old) == {("turn", PIANO), ("fact", FACT)}


@pytest.mark.parametrize("words", [(), ("--memories", "--agent", "a"), ("--user", "alice", "--agent", "a")])
def test_a_backfill_says_of_what(words: tuple[str, ...]):
    assert CliRunner().invoke(cli, ["backfill", *words]).exit_code == 2
