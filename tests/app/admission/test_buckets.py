"""Buckets that replicas share: never more than they hold, whoever asks whom and when."""

import asyncio
import gc
import weakref
from datetime import UTC, datetime, timedelta
from itertools import combinations_with_replacement

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select

from app.admission.buckets import SWEPT_AFTER, Buckets
from app.admission.errors import RateExceeded
from app.admission.quotas import Quota
from app.postgres import EmbeddedPostgres
from app.postgres.pools import dsn, service_database
from retrieval.database.database import Database
from retrieval.errors import UserErased
from retrieval.tables.keys import rate_limits
from tests.app.admission.conftest import somebody
from tests.conftest import new_database
from writer.author import Author
from writer.rights.erase import erase

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
SMALL = Quota("user-writes", size=5, every_s=2.0)
LARGE = Quota("user-writes", size=100, every_s=0.1)


async def let_through(buckets: Buckets, quota: Quota, author: Author, at: datetime, name: str = "") -> bool:
    try:
        await buckets.take(quota, author, name, at)
    except RateExceeded:
        return False
    return True


async def test_a_full_bucket_has_its_size_and_then_one_for_each_interval(database: Database):
    buckets, author = Buckets(database), somebody()
    assert [await let_through(buckets, SMALL, author, NOON) for _ in range(7)] == [True] * 5 + [False] * 2
    for second, through in ((1, False), (2, True), (3, False), (4, True), (4, False), (14, True)):
        assert await let_through(buckets, SMALL, author, NOON + timedelta(seconds=second)) is through, second


async def test_names_of_any_length_are_not_kept_in_memory(database: Database):
    class Name(str):
        """A text that weak references can point to."""

        __slots__ = ("__weakref__",)

    buckets, author, name = Buckets(database), somebody(), Name("A" * 60_000)
    assert await let_through(buckets, SMALL, author, NOON, name)
    kept = weakref.ref(name)
    del name
    gc.collect()
    assert kept() is None
    taken = [await let_through(buckets, SMALL, author, NOON, "A" * 60_000) for _ in range(5)]
    assert taken == [True] * 4 + [False]  # it is the same bucket


async def test_a_refusal_says_when_there_is_a_token_again(database: Database):
    buckets, author = Buckets(database), somebody()
    for _ in range(5):
        await buckets.take(SMALL, author, "", NOON)
    with pytest.raises(RateExceeded) as refused:
        await buckets.take(SMALL, author, "", NOON + timedelta(seconds=0.5))
    assert refused.value.retry_s == pytest.approx(1.5, abs=0.4)
    assert (refused.value.policy, refused.value.standing.left) == ("user-writes", 0)


async def test_what_is_left_is_told(database: Database):
    buckets, author = Buckets(database), somebody()
    assert [(await buckets.take(LARGE, author, "", NOON)).left for _ in range(100)] == list(range(99, -1, -1))


async def test_two_processes_share_a_bucket(database: Database):
    author, here, there = somebody(), Buckets(database), Buckets(database)
    through = [await let_through(buckets, SMALL, author, NOON) for buckets in [here, there] * 4]
    assert sum(through) == 5


async def test_sixty_at_once_get_no_more_than_there_is(database: Database):
    buckets, author = Buckets(database), somebody()
    through = await asyncio.gather(*(let_through(buckets, SMALL, author, NOON) for _ in range(60)))
    assert sum(through) == 5


async def test_buckets_of_other_names_and_users_are_others(database: Database):
    buckets, alice, bob = Buckets(database), somebody(), somebody()
    for author, name in ((alice, ""), (bob, ""), (alice, "session")):
        assert [await let_through(buckets, SMALL, author, NOON, name) for _ in range(6)] == [True] * 5 + [False]


async def test_a_clock_that_goes_back_empties_a_bucket_at_worst(database: Database):
    buckets, author = Buckets(database), somebody()
    await buckets.take(SMALL, author, "", NOON)
    before = NOON - timedelta(hours=1)
    assert not await let_through(buckets, SMALL, author, before)
    assert await let_through(buckets, SMALL, author, before + timedelta(seconds=10))


async def test_a_quota_that_was_made_smaller_empties_a_bucket_at_worst(database: Database):
    buckets, author = Buckets(database), somebody()
    for _ in range(100):
        await buckets.take(Quota("user-writes", 100, 60.0), author, "", NOON)
    smaller = Quota("user-writes", 2, 1.0)
    assert not await let_through(Buckets(database), smaller, author, NOON)
    assert await let_through(Buckets(database), smaller, author, NOON + timedelta(seconds=2))


async def test_buckets_that_are_full_again_go_with_the_next_take_and_others_stay(database: Database):
    buckets, author = Buckets(database), somebody()
    for session in ("a", "b", "c"):
        await buckets.take(SMALL, author, session, NOON)
    later = NOON + SWEPT_AFTER + timedelta(seconds=1)
    await Buckets(database).take(SMALL, author, "b", later)  # full at NOON + 2, and taken from again
    await Buckets(database).take(SMALL, author, "d", later + timedelta(seconds=2))
    async with database.as_user(author.user_sub, author.authorised_at) as connection:
        statement = select(func.count()).where(rate_limits.c.user_sub == author.user_sub)
        assert await connection.scalar(statement) == 2


async def test_a_purge_takes_the_buckets_along_and_no_old_token_brings_one_back(database: Database):
    author = somebody()
    await Buckets(database).take(SMALL, author, "", NOON)
    receipt = await erase(database, author.user_sub)
    assert (receipt.rows["rate_limits"], receipt.clean) == (1, True)
    with pytest.raises(UserErased):
        await Buckets(database).take(SMALL, author, "", NOON)


async def test_no_disk_waits_for_the_buckets(database_url: str):
    owner = await asyncpg.connect(dsn(database_url))
    assert await owner.fetchval("SELECT relpersistence FROM pg_class WHERE relname = 'rate_limits'") == b"u"
    await owner.close()


Asked = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3_000)), max_size=60)
"""Which of three processes is asked, and how many milliseconds after the last time."""


@pytest.fixture(scope="module")
def runner_and_url(postgres: EmbeddedPostgres) -> tuple[asyncio.Runner, str]:
    runner = asyncio.Runner()
    return runner, runner.run(new_database(postgres))


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(asked=Asked, size=st.integers(1, 60), every_ms=st.integers(50, 2_000))
def test_in_no_window_more_gets_through_than_size_and_rate_allow(
    runner_and_url: tuple[asyncio.Runner, str], asked: list[tuple[int, int]], size: int, every_ms: int
):
    runner, url = runner_and_url
    quota = Quota("user-writes", size, every_ms / 1000)

    async def through() -> list[int]:
        async with service_database(url, pool_size=1) as database:
            processes, author, clock_ms, times = [Buckets(database) for _ in range(3)], somebody(), 0, []
            for process, later_ms in asked:
                clock_ms += later_ms
                if await let_through(processes[process], quota, author, NOON + timedelta(milliseconds=clock_ms)):
                    times.append(clock_ms)
            return times

    times = runner.run(through())
    most_held = len({process for process, _ in asked}) * (quota.block - 1)
    for first, last in combinations_with_replacement(range(len(times)), 2):
        assert last - first + 1 <= size + (times[last] - times[first]) / every_ms + most_held
