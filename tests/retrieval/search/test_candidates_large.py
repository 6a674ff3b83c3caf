"""The HNSW index: what comes out of it is what the exact search finds, and never what it must not."""

import os
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from statistics import fmean
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from cachetools import LRUCache
from sqlalchemy import delete, select, update

from app.postgres import EmbeddedPostgres
from app.postgres.pools import dsn, service_database
from app.providers.wordllama import WordLlamaEmbedder
from retrieval.ranking.retrieved import Question, Retrieved
from retrieval.retrieve import Reader
from retrieval.search.candidates import HALF, CandidateReader, CaseSearch, Filters, candidates
from retrieval.tables.cases import INDEXED_DIMENSIONS, case_embeddings, cases
from retrieval.tables.profiles import profiles
from tests.cluster import one_postgres
from tests.conftest import new_database
from tests.writer.conftest import AGENT, Bank
from tests.writer.pruned_banks import mark_pruned
from writer.privacy.keys import Keyring
from writer.profiles import Profile
from writer.queue.worker import Worker
from writer.retain.retain import retain
from writer.run import FinishedRun
from writer.upkeep.hnsw import index_profile
from writer.upkeep.reembed import reembed

pytestmark = one_postgres

VERBS = ["restart", "repair", "measure", "paint", "replace", "document", "order", "clean", "insure", "translate"]
THINGS = ["web server", "wooden bridge", "tax return", "kitchen sink", "old guitar", "night train", "rose", "passport"]
PLACES = ["at home", "in the office", "abroad", "for my aunt"]
TASKS = [f"{verb} the {thing} {place}" for verb in VERBS for thing in THINGS for place in PLACES]
QUERIES = [
    "restart the server",
    "fix a leaking sink in the kitchen",
    "music instruments",
    "what to do with taxes",
    "paint paint paint",
    "quelle heure est-il",
    "the",
    "zyzzyva",
    *(f"{verb} a {thing}" for verb, thing in zip(VERBS, THINGS, strict=False)),
]
EMBEDDER = WordLlamaEmbedder()
INDEX = f"case_embeddings_hnsw_{EMBEDDER.dimension}_idx"
SMALL = 10**6


@dataclass(frozen=True)
class Indexed:
    """A bank whose users' vectors share one index."""

    bank: Bank
    url: str

    async def fill(self, user: str, tasks: Sequence[str], *, large: int = 1) -> list[UUID]:
        ids = await self.bank.add(user, *({"task": task, "tags": [task.split()[0]]} for task in tasks))
        await reembed(self.bank.database, EMBEDDER, self.bank.profile(user))
        assert await index_profile(self.bank.database, self.bank.profile(user), large=large) == (large <= len(tasks))
        return ids

    async def find(self, user: str, query: str, *, approximate: bool = True, **more: Any) -> list[Any]:
        (vector,) = await EMBEDDER.embed([query])
        search = CaseSearch(AGENT, query, vector.tolist(), EMBEDDER.model, **more)
        async with self.bank.database.fast(user, datetime.now(UTC)) as connection:
            rows = await connection.all(*candidates(search, approximate=approximate))
        return [row for row in rows if row.id is not None]

    async def scans(self) -> int:
        """How often the index was asked, over the only connection that asks it."""
        async with self.bank.database.fast("nobody", datetime.now(UTC)) as connection:
            await connection.driver.execute("SELECT pg_stat_force_next_flush()")
            asked = "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = $1"
            return int(await connection.driver.fetchval(asked, INDEX))

    async def change(self, user: str, statement: Any) -> None:
        async with self.bank.database.as_user(user, datetime.now(UTC)) as connection:
            await connection.execute(statement)


@pytest.fixture(scope="module")
async def empty(database_url: str) -> AsyncIterator[Indexed]:
    async with service_database(database_url, pool_size=1) as database:
        yield Indexed(Bank(database, Keyring(os.urandom(32))), database_url)


@pytest.fixture(scope="module")
async def indexed(empty: Indexed) -> Indexed:
    """Alice and Bob did the same, Bob twice."""
    await empty.fill("alice", TASKS)
    await empty.fill("bob", [*TASKS, *TASKS])
    return empty


def ids(rows: Sequence[Any]) -> list[UUID]:
    return [row.id for row in rows]


def slate_ids(slate: Retrieved) -> list[UUID]:
    return [choice.row.id for choice in slate.choices]


async def test_the_database_has_an_index_for_each_dimension_that_is_looked_for_in_one(empty: Indexed):
    connection = await asyncpg.connect(dsn(empty.url))
    names = await connection.fetch("SELECT indexname FROM pg_indexes WHERE indexname LIKE 'case_embeddings_hnsw_%'")
    await connection.close()
    assert {row[0] for row in names} == {f"case_embeddings_hnsw_{number}_idx" for number in INDEXED_DIMENSIONS}


async def test_the_index_finds_what_the_exact_search_finds(indexed: Indexed):
    before = await indexed.scans()
    exact = [ids(await indexed.find("alice", query, approximate=False))[:4] for query in QUERIES]
    assert await indexed.scans() == before
    found = [ids(await indexed.find("alice", query))[:4] for query in QUERIES]
    assert await indexed.scans() == before + len(QUERIES)
    overlap = fmean(len({*ours} & {*theirs}) / 4 for ours, theirs in zip(found, exact, strict=True))
    assert overlap >= 0.9


async def test_the_ranks_and_similarities_are_those_of_the_exact_search(indexed: Indexed):
    exact = {row.id: row for row in await indexed.find("alice", "repair the old guitar", approximate=False)}
    rows = await indexed.find("alice", "repair the old guitar")
    assert len(rows) == 32
    assert sum(row.id in exact for row in rows) >= 30
    for row in rows:
        assert row.similarity is not None
        if row.id in exact:
            assert row.similarity == pytest.approx(exact[row.id].similarity, abs=1e-6)
        if row.keyword_rank is not None and row.keyword_rank <= HALF and row.id in exact:
            assert row.keyword_rank == exact[row.id].keyword_rank


async def test_a_user_finds_their_own_cases_alone_in_a_shared_index(indexed: Indexed):
    for user, others in (("alice", "bob"), ("bob", "alice")):
        theirs = await indexed.bank.ids(others, "ready")
        mine = await indexed.bank.ids(user, "ready")
        for query in QUERIES:
            found = set(ids(await indexed.find(user, query)))
            assert found <= mine
            assert not found & theirs


async def test_the_search_through_the_index_obeys_row_level_security(indexed: Indexed):
    (vector,) = await EMBEDDER.embed(["guitar"])
    search = "SELECT count(*) FROM casebank_nearest($1, $2, $3, $4, $5, 64)"
    async with indexed.bank.database.fast("bob", datetime.now(UTC)) as connection:
        for approximate in (True, False):
            for entered, rows in (("bob", 64), ("alice", 0), ("", 0)):
                async with connection.driver.transaction():
                    await connection.driver.execute("SELECT set_config('app.user_sub', $1, true)", entered)
                    asked = search, "bob", AGENT, EMBEDDER.model, vector.tolist(), approximate
                    assert await connection.driver.fetchval(*asked) == rows


async def test_filters_are_answered_exactly(indexed: Indexed):
    before = await indexed.scans()
    for filters in (Filters(tags=["paint"]), Filters(kinds=["task"]), Filters(outcomes=["success"])):
        through = await indexed.find("alice", "a guitar", filters=filters)
        assert ids(through) == ids(await indexed.find("alice", "a guitar", approximate=False, filters=filters))
    assert await indexed.scans() == before
    assert {row.task.split()[0] for row in await indexed.find("alice", "a guitar", filters=Filters(["paint"]))} == {
        "paint"
    }


async def test_a_pruned_or_deleted_case_does_not_come_back(empty: Indexed):
    await empty.fill("carol", TASKS)
    first, second, *_ = await empty.find("carol", "clean the kitchen sink abroad")
    await empty.change("carol", mark_pruned("carol", [first.id]))
    await empty.change("carol", delete(cases).where(cases.c.user_sub == "carol", cases.c.id == second.id))
    before = await empty.scans()
    left = await empty.find("carol", "clean the kitchen sink abroad")
    assert await empty.scans() == before + 1
    assert len(left) == 32
    assert not {first.id, second.id} & set(ids(left))


async def test_where_the_index_has_too_few_the_rest_is_found_all_the_same(empty: Indexed):
    made = await empty.fill("few", TASKS[:10])
    await empty.change("few", mark_pruned("few", made[:3]))
    for query in QUERIES:
        assert set(ids(await empty.find("few", query))) == set(made[3:])


async def test_where_others_crowd_the_neighbourhood_the_search_is_exact(empty: Indexed):
    await empty.fill("quiet", [task for task in TASKS if not task.startswith("paint")][:100])
    await empty.fill("loud", [f"paint fence {number} and fence {number * number}" for number in range(400)])
    exact = await empty.find("quiet", "paint fence", approximate=False)
    async with empty.bank.database.fast("quiet", datetime.now(UTC)) as connection:
        await connection.driver.execute("SET hnsw.max_scan_tuples = 1")  # gives up after the first hundred or so
    before = await empty.scans()
    found = await empty.find("quiet", "paint fence")
    assert await empty.scans() == before + 1
    async with empty.bank.database.fast("quiet", datetime.now(UTC)) as connection:
        await connection.driver.execute("RESET hnsw.max_scan_tuples")
    assert len(exact) == 32
    assert ids(found) == ids(exact)


async def test_a_profile_that_is_not_in_the_index_is_searched_exactly(empty: Indexed):
    await empty.fill("outside", TASKS, large=SMALL)
    before = await empty.scans()
    for query in QUERIES:
        assert ids(await empty.find("outside", query)) == ids(await empty.find("outside", query, approximate=False))
    assert await empty.scans() == before


async def test_vectors_of_another_model_stay_apart_in_the_index(empty: Indexed):
    made = await empty.fill("mixed", TASKS[:70])
    other = (
        update(case_embeddings)
        .where(case_embeddings.c.user_sub == "mixed", case_embeddings.c.case_id.in_(made[:5]))
        .values(model="another")
    )
    await empty.change("mixed", other)
    rows = await empty.find("mixed", "zyzzyva")
    assert set(ids(rows)) <= set(made[5:])
    await empty.change(
        "mixed", update(profiles).where(profiles.c.user_sub == "mixed").values(embedding_model="another")
    )
    assert await empty.find("mixed", "zyzzyva") == []
    assert {row.semantic_rank for row in await empty.find("mixed", "restart the rose")} == {None}


# The reader


async def test_the_reader_uses_the_index_from_the_second_retrieve_on(indexed: Indexed):
    reader, question = (
        Reader(indexed.bank.database, EMBEDDER),
        Question(CaseSearch(AGENT, "repair the old guitar at home")),
    )
    asked = [await indexed.scans()]
    slates = []
    for _ in range(3):
        slates.append(await reader.retrieve("alice", datetime.now(UTC), question))
        asked.append(await indexed.scans())
    assert [number - asked[0] for number in asked] == [0, 0, 1, 2]
    assert slates[0].choices[0].row.task == "repair the old guitar at home"
    assert slate_ids(slates[0])[0] == slate_ids(slates[1])[0] == slate_ids(slates[2])[0]
    assert {(slate.mode, *slate.degraded) for slate in slates} == {("hybrid",)}


async def test_the_reader_forgets_a_profile_that_has_left_the_index(empty: Indexed):
    await empty.fill("shrinking", TASKS)
    reader, question = Reader(empty.bank.database, EMBEDDER), Question(CaseSearch(AGENT, "repair the old guitar"))
    exact = slate_ids(await reader.retrieve("shrinking", datetime.now(UTC), question))
    assert await index_profile(empty.bank.database, empty.bank.profile("shrinking"), large=SMALL)
    before = await empty.scans()
    for _ in range(2):
        assert slate_ids(await reader.retrieve("shrinking", datetime.now(UTC), question)) == exact
    assert await empty.scans() == before


async def test_the_reader_remembers_the_latest_profiles_in_the_index_and_no_more(empty: Indexed):
    reader, question = Reader(empty.bank.database, EMBEDDER), Question(CaseSearch(AGENT, "repair the old guitar"))
    reader = replace(reader, _candidates=CandidateReader(LRUCache(1)))
    for user in ("first", "second"):
        await empty.fill(user, TASKS)

    async def scans(user: str) -> int:
        before = await empty.scans()
        await reader.retrieve(user, datetime.now(UTC), question)
        return await empty.scans() - before

    assert [await scans(user) for user in ("first", "first", "second", "second", "first")] == [0, 1, 0, 1, 0]


async def test_a_case_retained_into_a_large_profile_is_found(empty: Indexed):
    await empty.fill("busy", TASKS)
    reader, question = Reader(empty.bank.database, EMBEDDER), Question(CaseSearch(AGENT, "tune the harpsichord"))
    await reader.retrieve("busy", datetime.now(UTC), question)
    run = FinishedRun.model_validate({"agent": AGENT, "task": "tune the harpsichord", "outcome": "success"})
    kept = await retain(empty.bank.database, empty.bank.keyring, run, empty.bank.author("busy"))
    while await Worker(empty.bank.database, EMBEDDER, empty.bank.keyring).run_once():
        pass
    before = await empty.scans()
    slate = await reader.retrieve("busy", datetime.now(UTC), question)
    assert await empty.scans() == before + 1
    assert slate_ids(slate)[0] == kept.case_id
    assert slate.choices[0].row.semantic_rank == 1
    marked = select(case_embeddings.c.approximate).where(case_embeddings.c.case_id == kept.case_id)
    assert [row.approximate for row in await empty.bank.read("busy", marked)] == [True]


async def test_without_pgvector_there_is_no_index_and_none_is_used(postgres: EmbeddedPostgres):
    async with service_database(await new_database(postgres, pgvector="off")) as database:
        bank = Bank(database, Keyring(os.urandom(32)))
        await bank.add("dave", *({"task": task} for task in TASKS[:5]))
        profile = Profile("dave", AGENT, datetime.now(UTC))
        await reembed(database, EMBEDDER, profile)
        assert not await index_profile(database, profile, large=1)
        await bank.set_profile("dave", approximate=True)  # as if the extension had been taken away
        reader = Reader(database, EMBEDDER, pgvector=False)
        question = Question(CaseSearch(AGENT, TASKS[3]))
        for asking in (reader, reader, replace(reader)):
            slate = await asking.retrieve("dave", datetime.now(UTC), question)
            assert (slate.choices[0].row.task, slate.degraded) == (TASKS[3], ["pgvector"])
        assert await index_profile(database, profile, large=1)
