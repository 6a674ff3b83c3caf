"""Pruning on a real bank: softly first, then for good, in batches and by profile."""

from collections import Counter
from datetime import UTC, datetime

import asyncpg
import pytest
from sqlalchemy import event, func, insert, select
from sqlalchemy.engine.interfaces import DBAPICursor
from sqlalchemy.exc import DBAPIError

from retrieval.errors import DatabaseUnavailable
from retrieval.tables.cases import cases
from tests.cluster import one_postgres
from tests.writer.conftest import Bank
from tests.writer.pruned_banks import DAY, NOW, days_ago, reasons
from tests.writer.refused import refused_updates
from tests.writer.under_way import say
from writer.upkeep.prune import BATCH, WITH_MANY_ROWS, prune, prune_all


async def test_pruning_again_changes_nothing(bank: Bank, user: str):
    await bank.add(user, *(days_ago(age) for age in range(5)))
    await bank.set_profile(user, window_size=3)
    await prune(bank.database, bank.profile(user), now=NOW)
    before = await bank.ids(user, "ready")
    assert await prune(bank.database, bank.profile(user), now=NOW) == Counter()
    assert await bank.ids(user, "ready") == before


async def test_merged_cases_go_and_pending_and_dead_ones_stay(bank: Bank, user: str):
    rows = [days_ago(999, status=status) for status in ("merged", "pending", "dead")]
    merged, pending, dead = await bank.add(user, *rows)
    await bank.set_profile(user, window_size=1, ttl_days=1)
    assert await prune(bank.database, bank.profile(user), now=NOW) == Counter(soft=1)
    assert await bank.ids(user, "pruned") == {merged}
    assert await bank.ids(user, "pending") == {pending}
    assert await bank.ids(user, "dead") == {dead}


async def test_a_pruned_case_is_deleted_for_good_when_its_time_is_over(bank: Bank, user: str):
    await bank.add(user, days_ago(3), days_ago(2))
    await bank.set_profile(user, window_size=1)
    kept = 30 * DAY
    assert await prune(bank.database, bank.profile(user), now=NOW, kept=kept) == Counter(soft=1)
    assert await prune(bank.database, bank.profile(user), now=NOW + kept, kept=kept) == Counter()
    assert await prune(bank.database, bank.profile(user), now=NOW + kept + DAY, kept=kept) == Counter(hard=1)
    assert await bank.ids(user, "pruned") == set()
    assert sorted((await reasons(bank, user)).values()) == ["deleted"]  # both entries are about one case
    assert (await bank.counts(user))["audit"] == 2


@one_postgres
async def test_few_sessions_are_deleted_at_a_time_because_each_may_have_thousands_of_turns(
    bank: Bank, user: str, owner: asyncpg.Connection
):
    number = 2 * WITH_MANY_ROWS + 1
    for each in range(number):
        await say(bank, user, f"chat {each}", "hello")
    await owner.execute("UPDATE sessions SET last_turn_at = now() - interval '3 days' WHERE user_sub = $1", user)
    await bank.set_profile(user, session_ttl_days=1)
    deleted: list[int] = []
    engine = bank.database.engine.sync_engine

    def see(_connection: object, cursor: DBAPICursor, statement: str, *_: object) -> None:
        if statement.startswith("DELETE FROM sessions"):
            deleted.append(cursor.rowcount)

    event.listen(engine, "after_cursor_execute", see)
    assert await prune(bank.database, bank.profile(user)) == Counter(sessions=number)
    event.remove(engine, "after_cursor_execute", see)
    assert deleted == [WITH_MANY_ROWS, WITH_MANY_ROWS, 1]


@one_postgres
async def test_more_than_a_batch_goes_in_batches(bank: Bank, user: str):
    await bank.add(user, days_ago(1))
    double = select(*(cases.c[n] for n in COPIED), func.gen_random_uuid(), func.generate_series(1, BATCH + 5))
    columns = [*COPIED, "id", "step_count"]
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await connection.execute(insert(cases).from_select(columns, double.where(cases.c.user_sub == user)))
    await bank.set_profile(user, window_size=2)
    assert await prune(bank.database, bank.profile(user), now=NOW) == Counter(soft=BATCH + 4)
    assert len(await bank.ids(user, "ready")) == 2


COPIED = [c.name for c in cases.c if c.name not in {"id", "step_count", "search_vector", "idempotency_key"}]


async def test_each_profile_is_pruned_by_its_own_window(bank: Bank, user: str):
    mine, yours = f"{user}-1", f"{user}-2"
    for name in (mine, yours):
        await bank.add(name, *(days_ago(age) for age in range(3)))
    await bank.set_profile(mine, window_size=1)
    assert (await prune_all(bank.database, now=NOW))["soft"] >= 2
    assert [len(await bank.ids(name, "ready")) for name in (mine, yours)] == [1, 3]


@one_postgres
@pytest.mark.parametrize("sqlstate", ["P0001", "53300"], ids=["the database refuses it", "no answer"])
async def test_a_profile_that_cannot_be_pruned_keeps_no_other_from_it(
    bank: Bank, user: str, owner: asyncpg.Connection, sqlstate: str
):
    users = [f"{user}-{number}" for number in range(3)]
    for each in users:
        await bank.add(each, days_ago(2), days_ago(1))
        await bank.set_profile(each, window_size=1)
    async with refused_updates(owner, "cases", users[1], sqlstate):
        with pytest.raises((DBAPIError, DatabaseUnavailable)):
            await prune_all(bank.database, now=NOW)
    assert [len(await bank.ids(each, "pruned")) for each in users] == [1, 0, 1]


async def test_a_profile_with_nothing_to_remove_is_asked_once(bank: Bank, user: str):
    await bank.add(user, {}, {})
    statements: list[str] = []
    engine = bank.database.engine.sync_engine
    event.listen(engine, "before_cursor_execute", lambda _c, _u, statement, *_: statements.append(statement))
    assert await prune(bank.database, bank.profile(user)) == Counter()
    assert len([each for each in statements if "casebank_enter" not in each]) == 1
