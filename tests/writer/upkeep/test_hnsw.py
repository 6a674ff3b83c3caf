"""Upkeep of the HNSW index: who goes into it, who leaves it, and that no vector is forgotten on the way."""

import asyncio
import hashlib
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from sqlalchemy import event, func, select, update

from retrieval.tables.audit import audit
from retrieval.tables.cases import case_embeddings
from retrieval.tables.profiles import profiles
from tests.cluster import one_postgres
from tests.writer.conftest import Bank
from tests.writer.pruned_banks import mark_pruned
from tests.writer.upkeep.test_reembed import Space
from writer.rights.erase import erase
from writer.upkeep.hnsw import BATCH, index_all, index_profile
from writer.upkeep.reembed import reembed

pytestmark = one_postgres

DIMENSION = 256


class Wide(Space):
    """A space of a dimension that has an index."""

    def __init__(self, model: str, dimension: int = DIMENSION) -> None:
        super().__init__(model, dimension)

    def _vector(self, text: str) -> Any:
        numbers = np.frombuffer(hashlib.shake_256(text.encode()).digest(self.dimension), np.uint8) + np.float32(1)
        return numbers / np.linalg.norm(numbers)


async def bank_of(bank: Bank, user: str, count: int, space: Space | None = None) -> list[Any]:
    ids = await bank.add(user, *({} for _ in range(count)))
    await reembed(bank.database, space or Wide("wide"), bank.profile(user))
    return ids


async def index(bank: Bank, user: str, large: int) -> bool:
    return await index_profile(bank.database, bank.profile(user), large=large)


async def state(bank: Bank, user: str) -> tuple[bool, dict[bool, int]]:
    """Whether searches use the index, and how many vectors are in it and are not."""
    flag = await bank.read(user, select(profiles.c.approximate).where(profiles.c.user_sub == user))
    counted = select(case_embeddings.c.approximate, func.count()).where(case_embeddings.c.user_sub == user)
    rows = await bank.read(user, counted.group_by(case_embeddings.c.approximate))
    return flag[0][0], {row[0]: row[1] for row in rows}


async def notes(bank: Bank, user: str) -> list[Any]:
    noted = select(audit.c.payload).where(audit.c.user_sub == user, audit.c.action == "index_profile")
    return [row.payload for row in await bank.read(user, noted.order_by(audit.c.id))]


async def test_a_small_profile_is_asked_once(bank: Bank, user: str):
    await bank_of(bank, user, 3)
    statements: list[str] = []
    engine = bank.database.engine.sync_engine
    event.listen(engine, "before_cursor_execute", lambda _c, _u, statement, *_: statements.append(statement))
    assert not await index(bank, user, 10)
    assert len([each for each in statements if "casebank_enter" not in each]) == 1


async def test_a_profile_goes_into_the_index_when_it_is_large_and_leaves_below_half_of_that(bank: Bank, user: str):
    ids = await bank_of(bank, user, 9)
    assert not await index(bank, user, 10)
    assert await state(bank, user) == (False, {False: 9})
    ids += await bank_of(bank, user, 1)
    assert await index(bank, user, 10)
    assert await state(bank, user) == (True, {True: 10})
    await prune_some(bank, user, ids[:5])
    assert not await index(bank, user, 10)
    assert await state(bank, user) == (True, {True: 10})
    await prune_some(bank, user, ids[5:6])
    assert await index(bank, user, 10)
    assert await state(bank, user) == (False, {False: 10})
    assert await notes(bank, user) == [
        {"approximate": True, "vectors": 10},
        {"approximate": False, "vectors": 4},
    ]


async def test_on_a_cluster_a_profile_stays_out_and_one_that_is_in_leaves(bank: Bank, user: str):
    await bank_of(bank, user, 10)
    cluster = replace(bank.database, citus=True)
    assert not await index_profile(cluster, bank.profile(user), large=10)
    assert await index(bank, user, 10)
    assert await index_profile(cluster, bank.profile(user), large=10)
    assert await state(bank, user) == (False, {False: 10})


async def prune_some(bank: Bank, user: str, ids: list[Any]) -> None:
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await connection.execute(mark_pruned(user, ids))


async def test_doing_it_again_changes_and_notes_nothing(bank: Bank, user: str):
    await bank_of(bank, user, 5)
    assert [await index(bank, user, 5) for _ in range(3)] == [True, False, False]
    assert len(await notes(bank, user)) == 1


async def test_more_vectors_than_one_statement_moves_are_all_moved(bank: Bank, user: str):
    count = BATCH + 7
    await bank_of(bank, user, count)
    assert await index(bank, user, count)
    assert await state(bank, user) == (True, {True: count})
    assert await index(bank, user, 10 * count)
    assert await state(bank, user) == (False, {False: count})


async def test_a_vector_that_was_left_out_is_brought_in_the_next_time(bank: Bank, user: str):
    first, *_ = await bank_of(bank, user, 5)
    await index(bank, user, 5)
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        left_out = update(case_embeddings).where(case_embeddings.c.user_sub == user, case_embeddings.c.case_id == first)
        await connection.execute(left_out.values(approximate=False))
    assert not await index(bank, user, 5)
    assert await state(bank, user) == (True, {True: 5})


async def test_new_vectors_take_the_side_of_their_profile(bank: Bank, user: str):
    await bank_of(bank, user, 5)
    await index(bank, user, 5)
    await bank_of(bank, user, 3)
    assert await state(bank, user) == (True, {True: 8})
    await bank_of(bank, user, 1, Wide("wider"))
    assert await state(bank, user) == (True, {True: 9})


async def test_a_profile_without_a_fitting_index_stays_out_and_leaves_when_it_changes_to_such_a_space(
    bank: Bank, user: str
):
    await bank_of(bank, user, 5, Space("narrow", 8))
    assert not await index(bank, user, 1)
    await bank_of(bank, user, 1, Wide("wide"))
    assert await index(bank, user, 1)
    await bank_of(bank, user, 1, Space("narrow", 8))
    assert await index(bank, user, 1)
    assert await state(bank, user) == (False, {False: 7})


async def test_a_profile_without_cases_stays_out(bank: Bank, user: str):
    assert not await index(bank, user, 0)
    await bank_of(bank, user, 0)
    assert not await index(bank, user, 1)


async def test_several_at_once_do_it_once(bank: Bank, user: str):
    await bank_of(bank, user, BATCH + 1)
    changed = await asyncio.gather(*(index(bank, user, 5) for _ in range(3)))
    assert sum(changed) == 1
    assert await state(bank, user) == (True, {True: BATCH + 1})
    assert len(await notes(bank, user)) == 1


async def test_every_profile_is_looked_at_and_an_erased_one_is_none(bank: Bank, user: str):
    large, small, gone = f"{user}-large", f"{user}-small", f"{user}-gone"
    for name, count in ((large, 40), (small, 3), (gone, 40)):
        await bank_of(bank, name, count)
    assert (await erase(bank.database, gone)).clean
    assert await index_all(bank.database, large=40) >= 1
    assert await state(bank, large) == (True, {True: 40})
    assert await state(bank, small) == (False, {False: 3})
