"""Facts that are stored together leave what they leave when each is stored alone."""

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import event, select
from sqlalchemy.dialects.postgresql import insert as upsert

from retrieval.tables.audit import audit
from retrieval.tables.memories import facts, memories
from retrieval.tables.profiles import profiles
from tests.writer.conftest import AGENT, Bank
from writer.facts.draft import FactDraft
from writer.facts.extract import read
from writer.facts.remove import close_fact, delete_fact, delete_facts
from writer.facts.store import Provenance, store_facts

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
SAID = [
    "I live in Leeds.",
    "I live in York.",
    "I no longer live in York.",
    "I love coffee.",
    "I hate coffee.",
    "I have two cats.",
    "I work as a nurse.",
]

Stated = list[tuple[FactDraft, Provenance]]


def stated(seed: int) -> Stated:
    """Facts of turns at random hours, some of which end."""
    rng = random.Random(seed)
    turns = [(rng.choice(SAID), NOON + timedelta(hours=rng.randrange(8))) for _ in range(14)]
    return [
        (draft, Provenance(AGENT, "test", "turn", at, rng.choice([None, None, at + timedelta(hours=2)])))
        for text, at in turns
        for draft in read(text, at.date())
    ]


async def left(bank: Bank, user: str, *batches: Stated) -> list[Any]:
    """Returns what the facts are, by their words, after the batches were stored one after the other."""
    async with bank.database.as_user(user, bank.author(user).authorised_at) as connection:
        words = await bank.keyring.find_or_make(connection, user)
        await connection.execute(upsert(profiles).values(user_sub=user, agent_key=AGENT))
        for batch in batches:
            await store_facts(connection, words, AGENT, batch)
        rows = (await connection.execute(select(facts).where(facts.c.user_sub == user).order_by(facts.c.id))).all()
        entries = await connection.execute(select(memories.c.fact_id).where(memories.c.user_sub == user))
        assert {row.fact_id for row in entries} == {row.id for row in rows}
        noted = select(audit.c.subject_id).where(audit.c.user_sub == user, audit.c.action == "insert_fact")
        assert [row.subject_id for row in await connection.execute(noted.order_by(audit.c.id))] == [r.id for r in rows]
    places = {row.id: place for place, row in enumerate(rows)}
    return [
        (
            words.open("fact", row.words, row.id)["text"],
            row.valid_from,
            row.valid_to,
            row.told,
            row.last_told_at,
            places.get(row.superseded_by),
        )
        for row in rows
    ]


@pytest.mark.parametrize("seed", range(12))
async def test_facts_of_a_batch_are_stored_as_if_one_after_the_other(bank: Bank, user: str, seed: int):
    batch = stated(seed)
    one_by_one = await left(bank, f"{user}-alone", *([each] for each in batch))
    assert await left(bank, f"{user}-together", batch) == one_by_one
    assert await left(bank, f"{user}-halves", batch[:5], batch[5:]) == one_by_one


async def test_many_facts_and_endings_take_as_many_statements_as_few(bank: Bank, user: str):
    statements: list[str] = []
    engine = bank.database.engine.sync_engine
    event.listen(engine, "before_cursor_execute", lambda _c, _u, statement, *_: statements.append(statement.split()[0]))
    taken: list[list[str]] = []
    for many in (1, 20):
        texts = [text for each in range(many) for text in (f"I love game{each}.", f"I no longer love game{each}.")]
        batch = [
            (draft, Provenance(AGENT, "test", "turn", NOON + timedelta(minutes=minute)))
            for minute, text in enumerate(texts)
            for draft in read(text, NOON.date())
        ]
        statements.clear()
        rows = await left(bank, f"{user}-{many}", batch)
        assert [row[2] is None for row in rows] == [False] * many
        taken.append(statements.copy())
    assert taken[0] == taken[1]


@pytest.mark.parametrize("seed", range(6))
async def test_facts_that_are_deleted_together_leave_what_they_leave_one_by_one(bank: Bank, user: str, seed: int):
    batch, after = stated(seed), []
    for name, together in ((f"{user}-together", True), (f"{user}-alone", False)):
        await left(bank, name, batch)
        rows = await bank.read(name, select(facts.c.id).where(facts.c.user_sub == name).order_by(facts.c.id))
        places = {row.id: place for place, row in enumerate(rows)}
        doomed = random.Random(seed).sample(list(places), len(places) // 2)
        author = bank.author(name)
        async with bank.database.as_user(name, datetime.now(UTC)) as connection:
            for ids in [doomed] if together else [[each] for each in doomed]:
                await delete_facts(connection, author, facts.c.id.in_(ids))
        kept = await bank.read(name, select(facts).where(facts.c.user_sub == name).order_by(facts.c.id))
        after.append([(places[row.id], row.valid_from, row.valid_to, places.get(row.superseded_by)) for row in kept])
    assert after[0] == after[1]


async def test_to_delete_many_facts_takes_as_many_statements_as_two(bank: Bank, user: str):
    statements: list[str] = []
    engine = bank.database.engine.sync_engine
    event.listen(engine, "before_cursor_execute", lambda _c, _u, statement, *_: statements.append(statement.split()[0]))
    taken: list[list[str]] = []
    for many in (2, 40):
        name = f"{user}-{many}"
        said = [(f"I {verb} game{each}.", each) for each in range(many // 2) for verb in ("love", "hate")]
        await left(
            bank, name, [(d, Provenance(AGENT, "test", "turn", NOON)) for t, _ in said for d in read(t, NOON.date())]
        )
        statements.clear()
        async with bank.database.as_user(name, datetime.now(UTC)) as connection:
            assert len(await delete_facts(connection, bank.author(name))) == many
        taken.append(statements.copy())
    assert taken[0] == taken[1]


async def homes(bank: Bank, user: str, *said: tuple[str, datetime]) -> list[Any]:
    """Stores the homes that these turns state or end, and returns their rows by the start."""
    batch = [(draft, Provenance(AGENT, "test", "turn", at)) for text, at in said for draft in read(text, at.date())]
    await left(bank, user, batch)
    return await bank.read(user, select(facts).where(facts.c.user_sub == user).order_by(facts.c.valid_from))


async def test_what_a_user_took_back_late_does_not_hold_again_when_the_fact_after_it_is_deleted(bank: Bank, user: str):
    day = timedelta(days=1)
    told = ("I live in York.", NOON), ("I live in Leeds.", NOON + 9 * day), ("I no longer live in York.", NOON + day)
    york, leeds = await homes(bank, user, *told)
    assert (york.valid_to, york.superseded_by) == (NOON + day, None)
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await delete_fact(connection, bank.author(user), leeds.id)
    (york,) = await bank.read(user, select(facts).where(facts.c.user_sub == user))
    assert york.valid_to == NOON + day


async def test_what_a_person_ended_does_not_hold_again_when_the_fact_after_it_is_deleted(bank: Bank, user: str):
    now = datetime.now(UTC)
    york, leeds = await homes(bank, user, ("I live in York.", NOON), ("I live in Leeds.", now + timedelta(days=9)))
    async with bank.database.as_user(user, now) as connection:
        await close_fact(connection, bank.author(user), AGENT, york.id)
        await delete_fact(connection, bank.author(user), leeds.id)
    (york,) = await bank.read(user, select(facts).where(facts.c.user_sub == user))
    assert york.valid_to is not None
