"""Re-embedding: the old space serves until the new one is whole, and nothing is embedded twice."""

import asyncio
import hashlib
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from sqlalchemy import delete, func, insert, select, update

from app.postgres import EmbeddedPostgres
from app.postgres.pools import service_database
from retrieval.errors import EmbedderRefused, EmbedderUnavailable
from retrieval.ports import Vectors, embedder_inputs
from retrieval.tables.cases import case_embeddings, cases
from retrieval.tables.procedures import procedures
from retrieval.tables.profiles import profiles, replays
from tests.conftest import new_database
from tests.writer.conftest import AGENT, Bank
from tests.writer.pruned_banks import mark_pruned
from writer.privacy.keys import Keyring
from writer.profiles import Profile
from writer.replays.profile_replay import replay_if_due
from writer.upkeep.reembed import reembed, reembed_all, unembedded
from writer.upkeep.reseal import reseal_all


class Space:
    """An embedder of a named space; it fails from its ``breaks_at``-th call on, and can be looked over the shoulder."""

    def __init__(self, model: str, dimension: int = 8, breaks_at: int | None = None) -> None:
        self.model, self.dimension, self.breaks_at = model, dimension, breaks_at
        self.seen: list[str] = []
        self.calls = 0
        self.meanwhile: Any = None

    async def embed(self, texts: Sequence[str]) -> Vectors:
        self.calls += 1
        if self.breaks_at is not None and self.calls >= self.breaks_at:
            raise EmbedderUnavailable("down")
        inputs = embedder_inputs(texts, 1_000)
        if self.meanwhile is not None:
            await self.meanwhile()
        self.seen += inputs
        return np.array([self._vector(text) for text in inputs], np.float32).reshape(-1, self.dimension)

    async def aclose(self) -> None:
        pass

    def _vector(self, text: str) -> Any:
        numbers = np.frombuffer(hashlib.sha512(text.encode()).digest()[: self.dimension], np.uint8) + np.float32(1)
        return numbers / np.linalg.norm(numbers)


async def spaces(bank: Bank, user: str) -> dict[str, int]:
    counted = select(case_embeddings.c.model, func.count()).where(case_embeddings.c.user_sub == user)
    return dict(tuple(row) for row in await bank.read(user, counted.group_by(case_embeddings.c.model)))


async def chosen(bank: Bank, user: str) -> str | None:
    return (await bank.read(user, select(profiles.c.embedding_model).where(profiles.c.user_sub == user)))[0][0]


async def old_bank(bank: Bank, user: str, size: int) -> list[Any]:
    ids = await bank.add(user, *({} for _ in range(size)))
    assert await reembed(bank.database, Space("old", 4), bank.profile(user)) == size
    assert (await spaces(bank, user), await chosen(bank, user)) == ({"old": size}, "old")
    return ids


async def test_the_old_space_serves_until_the_switch_which_is_one_step(bank: Bank, user: str):
    await old_bank(bank, user, 10)
    new, during = Space("new"), []

    async def look() -> None:
        during.append((await chosen(bank, user), (await spaces(bank, user))["old"]))

    new.meanwhile = look
    told: list[int] = []
    assert await reembed(bank.database, new, bank.profile(user), batch=4, progress=told.append) == 10
    assert during == [("old", 10)] * 3
    assert told == [4, 4, 2]
    assert (await spaces(bank, user), await chosen(bank, user)) == ({"new": 10}, "new")


async def test_the_switch_forgets_how_near_the_old_vectors_of_unlike_cases_were(bank: Bank, user: str):
    await old_bank(bank, user, 3)
    assert await replay_if_due(bank.database, bank.profile(user)) is not None
    measured = select(replays.c.unlike).where(replays.c.user_sub == user)
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await connection.execute(update(replays).where(replays.c.user_sub == user).values(unlike=0.8))
    assert await reembed(bank.database, Space("old", 4), bank.profile(user)) == 0
    assert [row.unlike for row in await bank.read(user, measured)] == [0.8]
    assert await reembed(bank.database, Space("new"), bank.profile(user)) == 3
    assert [row.unlike for row in await bank.read(user, measured)] == [None]


async def test_an_interrupted_run_goes_on_where_it_stopped(bank: Bank, user: str):
    await old_bank(bank, user, 10)
    broken = Space("new", breaks_at=3)
    with pytest.raises(EmbedderUnavailable):
        await reembed(bank.database, broken, bank.profile(user), batch=4)
    assert (await spaces(bank, user), await chosen(bank, user)) == ({"old": 10, "new": 8}, "old")
    rest = Space("new")
    assert await reembed(bank.database, rest, bank.profile(user), batch=4) == 2
    assert not set(rest.seen) & set(broken.seen)
    assert (await spaces(bank, user), await chosen(bank, user)) == ({"new": 10}, "new")


async def test_doing_it_again_embeds_nothing(bank: Bank, user: str):
    await old_bank(bank, user, 3)
    again = Space("old", 4)
    assert await reembed(bank.database, again, bank.profile(user)) == 0
    assert again.calls == 0


async def test_a_case_that_becomes_ready_meanwhile_is_embedded_before_the_switch(bank: Bank, user: str):
    await old_bank(bank, user, 2)
    new = Space("new")

    async def one_more() -> None:
        new.meanwhile = None
        await bank.add(user, {})

    new.meanwhile = one_more
    assert await reembed(bank.database, new, bank.profile(user)) == 3
    assert await spaces(bank, user) == {"new": 3}


async def test_a_case_that_is_deleted_meanwhile_is_left_out(bank: Bank, user: str):
    gone, *_ = await old_bank(bank, user, 3)
    new = Space("new")

    async def one_less() -> None:
        new.meanwhile = None
        async with bank.database.as_user(user, datetime.now(UTC)) as connection:
            await connection.execute(delete(cases).where(cases.c.user_sub == user, cases.c.id == gone))

    new.meanwhile = one_less
    assert await reembed(bank.database, new, bank.profile(user)) == 2
    assert await spaces(bank, user) == {"new": 2}


async def test_a_case_with_nothing_to_embed_stops_nothing(bank: Bank, user: str):
    await bank.add(user, {"task": " "}, {}, {"task": "\t"})
    assert await reembed(bank.database, Space("new"), bank.profile(user), batch=1) == 1
    assert (await spaces(bank, user), await chosen(bank, user)) == ({"new": 1}, "new")


async def test_a_missing_vector_in_the_present_space_is_filled(bank: Bank, user: str):
    first, *_ = await old_bank(bank, user, 3)
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        gone = delete(case_embeddings).where(case_embeddings.c.user_sub == user, case_embeddings.c.case_id == first)
        await connection.execute(gone)
    assert await reembed(bank.database, Space("old", 4), bank.profile(user)) == 1
    assert await spaces(bank, user) == {"old": 3}


async def test_only_ready_cases_are_embedded(bank: Bank, user: str):
    first, *_ = await old_bank(bank, user, 3)
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await connection.execute(mark_pruned(user, [first]))
    assert await reembed(bank.database, Space("new"), bank.profile(user)) == 2


async def test_two_at_once_leave_one_vector_a_case(bank: Bank, user: str):
    await old_bank(bank, user, 20)
    await asyncio.gather(*(reembed(bank.database, Space("new"), bank.profile(user), batch=3) for _ in range(2)))
    assert (await spaces(bank, user), await chosen(bank, user)) == ({"new": 20}, "new")


async def test_every_profile_is_brought_over(bank: Bank, user: str):
    users = [f"{user}-{number}" for number in range(3)]
    for name in users:
        await old_bank(bank, name, 2)
    assert await reembed_all(bank.database, Space("newest")) >= 6
    assert [await chosen(bank, name) for name in users] == ["newest"] * 3


async def test_a_user_whose_key_another_process_wrapped_with_its_own_master_key_stops_nobody(bank: Bank, user: str):
    stray = Bank(bank.database, Keyring(os.urandom(32)))
    users = [f"{user}-{letter}" for letter in "abc"]
    for name, whose in zip(users, (bank, stray, bank), strict=True):
        await whose.add(name, {})
    await reembed_all(bank.database, Space("newer"), Keyring(bank.keyring.master))
    assert [await chosen(bank, name) for name in users] == ["newer", None, "newer"]
    sealing = Keyring(bank.keyring.master, seals_words=True)
    await reseal_all(bank.database, sealing)
    sealed = [await bank.read(name, select(cases.c.words).where(cases.c.user_sub == name)) for name in users]
    assert [row.words is not None for (row,) in sealed] == [True, False, True]
    async with bank.database.as_user(users[1], datetime.now(UTC)) as connection:  # others go over every user
        await connection.execute(delete(cases).where(cases.c.user_sub == users[1]))


async def test_without_pgvector_the_vectors_are_stored_all_the_same(postgres: EmbeddedPostgres, bank: Bank, user: str):
    async with service_database(await new_database(postgres, pgvector="off")) as database:
        plain = Bank(database, bank.keyring)
        await plain.add(user, {}, {})
        async with plain.database.as_user(user, datetime.now(UTC)) as connection:
            await connection.execute(update(profiles).values(embedding_model=None))
        assert await reembed(plain.database, Space("new"), Profile(user, AGENT, datetime.now(UTC))) == 2
        assert await spaces(plain, user) == {"new": 2}


class Refusing(Space):
    """Refuses every request with a text of the kind that it never takes."""

    never = "poison"

    async def embed(self, texts: Sequence[str]) -> Vectors:
        if any(self.never in text for text in texts):
            raise EmbedderRefused("not this text")
        return await super().embed(texts)


async def test_a_text_that_the_embedder_refuses_goes_without_a_vector_and_stops_nobody(bank: Bank, user: str):
    other = f"{user}-too"
    await bank.add(user, {}, {"task": "poison"}, {})
    await bank.add(other, {})
    for each in (user, other):
        await reembed(bank.database, Space("old", 4), bank.profile(each))
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        procedure = {"user_sub": user, "agent_key": AGENT, "id": uuid4(), "version": 1, "record": {}, "kind": "script"}
        await connection.execute(insert(procedures).values({**procedure, "trigger": "drink the poison"}))
    await reembed_all(bank.database, Refusing("new"), bank.keyring)
    assert (await spaces(bank, user), await chosen(bank, user)) == ({"new": 2}, "new")
    assert (await spaces(bank, other), await chosen(bank, other)) == ({"new": 1}, "new")


async def test_an_embedder_that_refuses_everything_costs_no_vector(bank: Bank, user: str):
    await old_bank(bank, user, 3)
    refusing = Refusing("new")
    refusing.never = ""
    with pytest.raises(EmbedderUnavailable):
        await reembed(bank.database, refusing, bank.profile(user))
    assert (await spaces(bank, user), await chosen(bank, user)) == ({"old": 3}, "old")


async def test_more_cases_may_go_without_a_vector_than_a_statement_takes_values(bank: Bank, user: str):
    (case_id,) = await bank.add(user, {})
    without = [uuid4() for _ in range(2**15)]
    (left,) = await bank.read(user, unembedded(user, AGENT, "new", without))
    assert left.id == case_id
    assert await bank.read(user, unembedded(user, AGENT, "new", [*without, case_id])) == []


async def test_a_case_that_cannot_be_read_goes_without_a_vector_and_stops_nobody(bank: Bank, user: str):
    other = f"{user}-too"
    bad, _ = await bank.add(user, {"words": b"cut"}, {})
    await bank.add(other, {})
    await reembed_all(bank.database, Space("new"), bank.keyring)
    assert (await spaces(bank, user), await chosen(bank, user)) == ({"new": 1}, "new")
    assert (await spaces(bank, other), await chosen(bank, other)) == ({"new": 1}, "new")
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:  # others go over every user
        await connection.execute(delete(cases).where(cases.c.user_sub == user, cases.c.id == bad))
