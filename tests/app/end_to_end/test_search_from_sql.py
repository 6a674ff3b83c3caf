"""The search as a function in the database: by the user's own rows, with vectors of pgvector or without."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from functools import reduce
from random import Random
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from app.main import create_app
from app.postgres import EmbeddedPostgres
from app.postgres.migrate import migrate
from app.postgres.pools import dsn
from retrieval.search.candidates import CaseSearch, candidates
from tests.cluster import one_postgres
from tests.conftest import new_database
from tests.pages import blocks
from tests.service import AGENT, Service, User

pytestmark = one_postgres

SEARCH = "hybrid_search_context_eng_memories"
FAILED_ONCE = [
    {"tool": "sql", "input": "ALTER TABLE users ADD COLUMN last_name;", "output": "syntax error", "status": "error"},
    {"tool": "sql", "input": "ALTER TABLE users ADD COLUMN last_name text;", "output": "ALTER TABLE"},
]
WORDS = ["valve", "pump", "pipe", "leak", "water", "garden", "roof", "gutter", "paint", "wall", "gate", "lamp", "fuse"]
GARDEN = ["water the garden", "mow the lawn", "restart the web server", "paint the north wall"]


@pytest.fixture(scope="module", params=["auto", "off"])
async def plain(request: pytest.FixtureRequest, postgres: EmbeddedPostgres, service: Service) -> AsyncIterator[Service]:
    """A service whose words stand in plain, with pgvector and without."""
    url = await new_database(postgres, pgvector=request.param)
    settings = service.settings.model_copy(update={"seal": "payload", "database_url": url, "pgvector": request.param})
    app = create_app(settings)
    async with AsyncExitStack() as clients, app.router.lifespan_context(app):
        yield Service(app, settings, clients)


async def vector_of(service: Service, text: str) -> str:
    """The text's vector as pgvector and, but for the brackets, arrays are written."""
    (vector,) = await service.runtime.embedder.embed([text])
    numbers = ",".join(map(repr, vector.tolist()))
    return f"[{numbers}]" if service.runtime.reader.pgvector else f"{{{numbers}}}"


async def search(user: User, query: str, *, vector: str | None = "", count: int = 4, more: str = "") -> list[Any]:
    """What the function answers to the query and its own vector, or to the one that is given."""
    given = await vector_of(user.service, query) if vector == "" else vector
    kind = "vector" if user.service.runtime.reader.pgvector else "real[]"
    embedding = f"CAST(CAST(:embedding AS text) AS {kind})"
    call = f"SELECT * FROM {SEARCH}(:query, {embedding}, :count{more})"  # noqa: S608 - our own words
    return await user.rows(call, query=query, embedding=given, count=count)


async def filled(user: User, *tasks: str, **more: Any) -> list[UUID]:
    ids = [UUID(await user.retain(task, **more)) for task in tasks]
    await user.settle()
    return ids


async def test_it_has_the_name_the_arguments_and_the_columns_that_flows_know(service: Service, alice: User):
    (row,) = await alice.rows(
        "SELECT pg_get_function_arguments(oid) AS arguments, pg_get_function_result(oid) AS result, prosecdef"
        " FROM pg_proc WHERE proname = :name",
        name=SEARCH,
    )
    assert row.arguments == (
        "query_text text, query_embedding vector, match_count integer, full_text_weight double precision DEFAULT 1,"
        " semantic_weight double precision DEFAULT 1, rrf_k integer DEFAULT 50"
    )
    assert row.result == (
        "TABLE(id uuid, content text, metadata jsonb, created_dt timestamp with time zone, keyword_rank bigint,"
        " semantic_rank bigint, rrf double precision)"
    )
    assert not row.prosecdef


async def test_the_statements_of_the_page_answer_the_users_own_memories(service: Service, alice: User, bob: User):
    page, *_ = blocks("n8n.md", "sql")
    (mine,) = await filled(alice, "add a column to the users table")
    await filled(bob, "add a column to the orders table")
    statements = page.replace("'alice'", f"'{alice.name}'").replace(
        "[0.01, …]", await vector_of(service, "add a column")
    )
    connection = await asyncpg.connect(dsn(str(service.settings.database_url)))
    try:
        answers = [await connection.fetch(each) for each in statements.split(";") if each.strip()]
    finally:
        await connection.close()
    assert [[row["id"] for row in rows] for rows in answers if rows and "rrf" in rows[0]] == [[mine]]


async def test_the_node_of_n8n_sends_its_statements_together_and_an_error_leaves_its_connection_good(
    service: Service, alice: User
):
    """As n8n's Postgres node does: values put into the text, one message without parameters, a login of its own."""
    _, _, _, node, _ = blocks("n8n.md", "sql")
    await filled(alice, "add a column to the users table")
    login = f"n8n_{uuid4().hex}"
    url = dsn(str(service.settings.database_url))
    owner = await asyncpg.connect(url)
    await owner.execute(f"CREATE ROLE {login} LOGIN; GRANT casebank_service TO {login}")
    await owner.close()
    connection = await asyncpg.connect(url.replace("postgres@", f"{login}@"))

    async def send(user: str, vector: str) -> str:
        values = {"$1": f"'{user}'", "$2": "'add a column'", "$3": f"'{vector}'"}
        return await connection.execute(reduce(lambda text, each: text.replace(*each), values.items(), node))

    try:
        vector = await vector_of(service, "add a column")
        assert await send(alice.name, vector) == "SELECT 1"
        with pytest.raises(asyncpg.DataError):
            await send(alice.name, "[1,")
        assert await send(alice.name, vector) == "SELECT 1"
        assert await send("somebody else", vector) == "SELECT 0"
    finally:
        await connection.close()


async def test_it_ranks_as_the_service_does(plain: Service):
    alice = await plain.user()
    ids = await filled(alice, *GARDEN, plan=["look", "do it"])
    rows = await search(alice, "the garden is dry", count=50)
    told = (await alice.retrieve("the garden is dry", k=50))["cases"]
    ranks = {UUID(each["case_id"]): (each["keyword_rank"], each["semantic_rank"]) for each in told}
    assert {row.id for row in rows} == set(ids)
    assert {row.id: (row.keyword_rank, row.semantic_rank) for row in rows if row.id in ranks} == ranks
    assert (rows[0].id, rows[0].content) == (ids[0], GARDEN[0])
    assert [row.rrf for row in rows] == sorted((row.rrf for row in rows), reverse=True)
    for row in rows:
        halves = [1 / (50 + rank) for rank in (row.keyword_rank, row.semantic_rank) if rank is not None]
        assert row.rrf == pytest.approx(sum(halves))


async def test_it_counts_rare_words_as_the_service_does(plain: Service):
    alice = await plain.user()
    (rare,) = await filled(alice, "tune the harpsichord")
    await filled(
        alice, *(f"paint the long wall {number}" for number in range(8)), "paint a very long wall beside the gate"
    )
    query = "paint the long wall behind the harpsichord"
    rows = await search(alice, query, count=50)
    told = (await alice.retrieve(query, k=50))["cases"]
    by_words = {UUID(each["case_id"]): each["keyword_rank"] for each in told}
    assert len(by_words) > 4
    assert {row.id: row.keyword_rank for row in rows if row.id in by_words} == by_words
    assert {row.id: row.keyword_rank for row in rows}[rare] == 1


async def test_on_texts_of_any_words_and_lengths_both_statements_give_the_same_numbers(plain: Service):
    alice, rng = await plain.user(), Random(27)
    frequencies = [1 / place for place in range(1, len(WORDS) + 1)]
    await filled(alice, *(" ".join(rng.choices(WORDS, frequencies, k=rng.randint(2, 30))) for _ in range(24)))
    for _ in range(6):
        query = " ".join(rng.choices(WORDS, k=rng.randint(1, 6)))
        vector = (await plain.runtime.embedder.embed([query]))[0].tolist() if plain.runtime.reader.pgvector else None
        given = CaseSearch(AGENT, query, vector, plain.runtime.embedder.model)
        async with plain.runtime.database.fast(alice.name, datetime.now(UTC)) as connection:
            expected = await connection.all(*candidates(given))
        rows = await search(alice, query, count=50, vector="" if vector else None)
        assert len(expected) > 2
        assert [(row.id, row.keyword_rank, row.semantic_rank, row.rrf) for row in rows] == [
            (each.id, each.keyword_rank, each.semantic_rank, pytest.approx(each.rrf)) for each in expected
        ]


async def test_weights_and_k_are_those_of_the_formula(plain: Service):
    alice = await plain.user()
    await filled(alice, *GARDEN)
    for row in await search(alice, "the garden is dry", more=", 2, 0.5, 10"):
        keyword = 0 if row.keyword_rank is None else 2 / (10 + row.keyword_rank)
        assert row.rrf == pytest.approx(keyword + 0.5 / (10 + row.semantic_rank))
    (first, *_) = await search(alice, "mow", more=", semantic_weight => 0")
    assert first.content == "mow the lawn"


async def test_a_memory_has_its_procedure_and_what_became_of_it(plain: Service):
    alice = await plain.user()
    task = "Add a last_name column to the users table"
    (case_id,) = await filled(alice, task, tool_traces=FAILED_ONCE, plan=["ALTER TABLE"], tags=["ddl"], reward=0.05)
    (row,) = await search(alice, "add a column")
    case = await alice.case(str(case_id))
    assert row.metadata == case["procedure"] | {
        "agent": AGENT,
        "kind": "task",
        "outcome": "success",
        "reward": 0.05,
        "tags": ["ddl"],
        "plan": ["ALTER TABLE"],
    }
    assert row.created_dt == datetime.fromisoformat(case["created_at"])
    await alice.feedback(case_id=str(case_id), thumb="down")
    (row,) = await search(alice, "add a column")
    assert (row.metadata["status"], row.metadata["data"]) == (None, None)


async def test_without_a_vector_keywords_find_and_without_words_the_vector_does(plain: Service):
    alice = await plain.user()
    ids = await filled(alice, *GARDEN)
    (row,) = await search(alice, "garden", vector=None)
    assert (row.id, row.keyword_rank, row.semantic_rank) == (ids[0], 1, None)
    near = await search(alice, "", vector=await vector_of(plain, "water the garden"))
    assert (near[0].id, near[0].keyword_rank, near[0].semantic_rank) == (ids[0], None, 1)


async def test_a_vector_of_another_length_is_no_error_and_compares_with_nothing(plain: Service):
    alice = await plain.user()
    await filled(alice, *GARDEN)
    short = "[1,0]" if plain.runtime.reader.pgvector else "{1,0}"
    assert [row.semantic_rank for row in await search(alice, "garden", vector=short)] == [None]


@pytest.mark.parametrize(("count", "answered"), [(0, 0), (-3, 0), (2, 2), (1_000_000, 4)])
async def test_it_answers_as_many_as_asked_for_and_never_a_negative_number(plain: Service, count: int, answered: int):
    alice = await plain.user()
    await filled(alice, *GARDEN)
    assert len(await search(alice, "garden", count=count)) == answered


async def test_it_searches_all_agents_whose_memory_is_on_and_no_run_that_was_broken_off(plain: Service):
    alice = await plain.user()
    (one,) = await filled(alice, "water the garden", agent="gardener")
    (two,) = await filled(alice, "water the indoor plants", agent="butler")
    await filled(alice, "water the roof", outcome="aborted")
    assert {row.id for row in await search(alice, "water the plants")} == {one, two}
    await alice.http.put("/v1/profiles/butler", json={"enabled": False})
    assert {row.id for row in await search(alice, "water the plants")} == {one}


async def test_of_sealed_words_all_is_found_and_content_and_plan_alone_are_missing(alice: User):
    (case_id,) = await filled(alice, "Add a last_name column", tool_traces=FAILED_ONCE, plan=["ALTER TABLE"])
    (row,) = await search(alice, "column")
    assert (row.id, row.keyword_rank, row.semantic_rank) == (case_id, 1, 1)
    assert (row.content, row.metadata["plan"]) == (None, None)
    assert row.metadata["status"] == "procedure_learned"
    assert row.metadata["data"] == (await alice.case(str(case_id)))["procedure"]["data"]


async def test_the_view_shows_what_the_search_answers_with_the_vector_and_the_words_of_the_index(plain: Service):
    alice, bob = await plain.user(), await plain.user()
    await filled(alice, "Add a last_name column to the users table", tool_traces=FAILED_ONCE, plan=["ALTER TABLE"])
    await filled(alice, *GARDEN, agent="gardener", tags=["green"])
    await filled(alice, "water the roof", outcome="aborted")
    await filled(alice, "water the plants", agent="butler")
    await alice.http.put("/v1/profiles/butler", json={"enabled": False})
    await filled(bob, *GARDEN)
    found = await search(alice, "garden", count=50)
    rows = await alice.rows("SELECT * FROM context_eng_memories")
    assert {(row.id, row.content, str(row.metadata), row.created_dt) for row in rows} == {
        (row.id, row.content, str(row.metadata), row.created_dt) for row in found
    }
    assert len(rows) == 5
    told = {row.content: row for row in rows}["water the garden"]
    assert (told.agent, "garden" in told.fts) == ("gardener", True)
    assert told.embedding is not None


# Whose rows


async def test_nobody_sees_anothers_memories_whatever_the_role(plain: Service, database_url: str):
    alice, bob = await plain.user(), await plain.user()
    await filled(alice, *GARDEN)
    (own,) = await filled(bob, "water the balcony")
    assert [row.id for row in await search(bob, "water the garden")] == [own]
    assert plain.settings.database_url is not None
    owner = await asyncpg.connect(dsn(plain.settings.database_url))  # a superuser, whom no policy binds
    try:
        call = f"SELECT id FROM {SEARCH}('water the garden', NULL, 50)"  # noqa: S608 - our own words
        assert await owner.fetch(call) == []
        async with owner.transaction():
            await owner.execute("SELECT set_config('app.user_sub', $1, true)", bob.name)
            assert [row["id"] for row in await owner.fetch(call)] == [own]
        async with owner.transaction():
            await owner.execute("SET LOCAL ROLE casebank_service")
            assert await owner.fetch(call) == []
            await owner.execute("SELECT casebank_enter($1, now())", bob.name)
            assert [row["id"] for row in await owner.fetch(call)] == [own]
    finally:
        await owner.close()


async def test_after_a_downgrade_it_is_gone_and_comes_back(postgres: EmbeddedPostgres):
    url = await new_database(postgres)
    connection = await asyncpg.connect(dsn(url))
    try:
        assert await connection.fetchval("SELECT count(*) FROM pg_proc WHERE proname = $1", SEARCH) == 1
        await migrate(url, "base")
        assert await connection.fetchval("SELECT count(*) FROM pg_proc WHERE proname = $1", SEARCH) == 0
        await migrate(url)
        assert await connection.fetchval("SELECT count(*) FROM pg_proc WHERE proname = $1", SEARCH) == 1
    finally:
        await connection.close()
