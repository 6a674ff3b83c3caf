"""What retrieve answers while something is missing: the rest, and which part it was."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from sqlalchemy import update

from app.postgres import EmbeddedPostgres
from app.providers.openai import Endpoint, OpenAIEmbedder, Patience
from app.runtime import Runtime, running
from app.settings import Settings
from retrieval.ports import Embedder
from retrieval.ranking.retrieved import Question, Retrieved
from retrieval.search.candidates import CaseSearch
from retrieval.tables.profiles import profiles
from tests.conftest import new_database
from tests.fakes.openai_server import Fault, OpenAIServer
from writer.author import Author
from writer.queue.worker import Worker
from writer.retain.retain import retain
from writer.run import FinishedRun
from writer.sessions.append import append_turns
from writer.sessions.prepare import TurnsTold, prepare_turns

AGENT = "operator"
VERBS = ["restart", "repair", "measure", "paint", "replace", "document", "order", "clean", "insure", "translate"]
THINGS = ["the web server", "a wooden bridge", "our tax return", "the kitchen sink", "an old guitar", "the night train"]
TASKS = [f"{verb} {thing}" for verb in VERBS for thing in THINGS]
QUERIES = [
    "restart the server",
    "fix a leaking sink in the kitchen",
    "music instruments",
    "what to do with taxes",
    "paint paint paint",
    "quelle heure est-il",
    "the",
    "zyzzyva",
]
DIMENSION = 32
PATIENT = Patience(timeout_s=60, budget_s=60, attempts=1, failures_to_open=10**6)
IMPATIENT = Patience(timeout_s=0.3, budget_s=1, attempts=1)
"""For a server that never answers; one that does may be slow on a busy machine."""


@dataclass(frozen=True)
class Bank:
    """One user's bank in a running process."""

    runtime: Runtime
    user: str

    async def keep(self, task: str, **more: Any) -> None:
        author = Author(self.user, self.user, datetime.now(UTC))
        run = FinishedRun.model_validate({"agent": AGENT, "task": "any", "outcome": "success", **more})
        run = run.model_copy(update={"task": task})  # even one that is refused today, and that an older version took in
        await retain(self.runtime.database, self.runtime.keyring, run, author)

    async def say(self, *said: str) -> None:
        author = Author(self.user, self.user, datetime.now(UTC))
        told = TurnsTold.model_validate({"agent": AGENT, "turns": [{"role": "user", "content": text} for text in said]})
        await append_turns(self.runtime.database, self.runtime.keyring, "chat", prepare_turns(told), author)

    async def work(self, embedder: Embedder | None = None) -> None:
        parts = self.runtime
        worker = Worker(parts.database, embedder or parts.embedder, parts.keyring, parts.reader.pgvector)
        while await worker.run_once():
            pass

    async def ask(self, query: str, embedder: Embedder | None = None, **more: Any) -> Retrieved:
        reader = replace(self.runtime.reader, embedder=embedder or self.runtime.embedder)
        question = Question(CaseSearch(agent_key=AGENT, query=query), **more)
        return await reader.retrieve(self.user, datetime.now(UTC), question)


async def open_bank(stack: AsyncExitStack, url: str, home: Path) -> Bank:
    settings = Settings(home=home, database_url=url, master_key="5" * 64, worker_in_service=False, explore=False)
    return Bank(await stack.enter_async_context(running(settings)), f"user-{uuid4()}")


@pytest.fixture(scope="module")
async def banks(postgres: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[dict[str, Bank]]:
    """The same sixty cases, in a database with pgvector and in one without."""
    async with AsyncExitStack() as stack:
        made = {}
        for pgvector in ("auto", "off"):
            url = await new_database(postgres, pgvector=pgvector)
            bank = made[pgvector] = await open_bank(stack, url, tmp_path_factory.mktemp("home"))
            for number, task in enumerate(TASKS):
                outcome = "partial" if number % 7 == 0 else "success"
                await bank.keep(task, plan=[f"step {number}"], outcome=outcome, reward=(number % 5) / 4)
            await bank.work()
        yield made


@pytest.fixture
async def bank(banks: dict[str, Bank]) -> Bank:
    """An empty bank in the database with pgvector."""
    return replace(banks["auto"], user=f"user-{uuid4()}")


@pytest.fixture(scope="module")
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(DIMENSION) as server:
        yield server


@pytest.fixture
async def served(server: OpenAIServer) -> AsyncIterator[OpenAIEmbedder]:
    server.reset()
    embedder = named(server, "served")
    yield embedder
    await embedder.aclose()


def named(server: OpenAIServer, model: str, patience: Patience = PATIENT) -> OpenAIEmbedder:
    return OpenAIEmbedder(Endpoint(base_url=server.base_url, model=model, dimension=DIMENSION), patience)


# Without pgvector


async def test_a_database_without_pgvector_is_noticed(banks: dict[str, Bank]):
    assert {name: bank.runtime.reader.pgvector for name, bank in banks.items()} == {"auto": True, "off": False}
    for name, bank in banks.items():
        async with bank.runtime.database.as_user(bank.user, datetime.now(UTC)) as connection:
            raw = await connection.get_raw_connection()
            driver: Any = raw.driver_connection
            assert isinstance(driver, asyncpg.Connection)
            installed = await driver.fetchval("SELECT count(*) FROM pg_extension WHERE extname = 'vector'")
        assert installed == (name == "auto")


@pytest.mark.parametrize("query", QUERIES)
async def test_without_pgvector_the_slate_is_the_same_and_says_so(query: str, banks: dict[str, Bank]):
    with_it, without = [await banks[name].ask(query, k=20) for name in ("auto", "off")]
    assert bool(with_it.choices) == (query in QUERIES[:5])  # nothing in the bank has to do with the last three
    assert [choice.row.task for choice in without.choices] == [choice.row.task for choice in with_it.choices]
    for ours, theirs in zip(without.choices, with_it.choices, strict=True):
        for rank in ("semantic_rank", "keyword_rank", "rrf"):
            assert getattr(ours.row, rank) == getattr(theirs.row, rank)
        assert ours.row.similarity == pytest.approx(theirs.row.similarity, abs=1e-5)
    assert without.context == with_it.context
    assert (with_it.mode, with_it.degraded) == ("hybrid", [])
    assert (without.mode, without.degraded) == ("hybrid", ["pgvector"])


@pytest.mark.parametrize("bound", [-1.0, 0.2, 0.5, 1.0])
async def test_without_pgvector_the_least_similarity_still_holds(bound: float, banks: dict[str, Bank]):
    slates = [await banks[name].ask(QUERIES[0], k=50, min_similarity=bound) for name in ("auto", "off")]
    tasks = [[choice.row.task for choice in slate.choices] for slate in slates]
    assert tasks[0] == tasks[1]
    assert all(choice.row.similarity >= bound for slate in slates for choice in slate.choices)


async def test_without_pgvector_equal_runs_are_still_one_case(banks: dict[str, Bank]):
    bank = replace(banks["off"], user=f"user-{uuid4()}")
    for _ in range(3):
        await bank.keep("tune the piano")
    await bank.work()
    (choice,) = (await bank.ask("piano")).choices
    assert choice.row.occurrences == 3


# Without the embedder


@pytest.mark.parametrize("fault", [Fault.STATUS_500, Fault.HTML, Fault.NAN, Fault.WRONG_DIMENSION, Fault.NEVER])
async def test_without_the_embedder_keywords_carry_the_search(
    fault: Fault, bank: Bank, server: OpenAIServer, served: OpenAIEmbedder
):
    for task in TASKS[:6]:
        await bank.keep(task)
    await bank.work(served)
    whole = await bank.ask("an old guitar", served)
    assert (whole.mode, whole.degraded) == ("hybrid", [])
    assert whole.choices[0].row.semantic_rank == 1
    server.fault = fault
    failing = named(server, "served", IMPATIENT if fault is Fault.NEVER else PATIENT)
    slate = await bank.ask("an old guitar", failing)
    await failing.aclose()
    assert (slate.mode, slate.degraded) == ("keyword", ["embedder"])
    (choice,) = slate.choices
    assert choice.row.task == "restart an old guitar"
    assert (choice.row.keyword_rank, choice.row.semantic_rank, choice.row.similarity) == (1, None, None)
    assert choice.row.rrf == pytest.approx(1 / 51)
    assert "an old guitar" in slate.context.text


async def test_without_the_embedder_the_least_similarity_hides_nothing(
    bank: Bank, server: OpenAIServer, served: OpenAIEmbedder
):
    await bank.keep("tune the piano")
    await bank.work(served)
    server.fault = Fault.STATUS_500
    assert len((await bank.ask("piano", served, min_similarity=1.0)).choices) == 1


@pytest.mark.parametrize("pgvector", ["auto", "off"])
async def test_without_the_embedder_or_pgvector_what_was_said_is_recalled_by_its_words(
    pgvector: str, banks: dict[str, Bank], server: OpenAIServer, served: OpenAIEmbedder
):
    bank = replace(banks[pgvector], user=f"user-{uuid4()}")
    await bank.say("The piano in the hall needs tuning.", "Lunch was fine.")
    server.fault = Fault.STATUS_500 if pgvector == "auto" else None
    slate = await bank.ask("tune the piano", served, recall=True)
    assert slate.recalled is not None
    assert [each.text for each in slate.recalled.memories] == ["The piano in the hall needs tuning.", "Lunch was fine."]
    assert slate.recalled.degraded == slate.degraded == (["embedder"] if pgvector == "auto" else ["pgvector"])
    assert "The piano in the hall" in slate.context.text


async def test_without_the_embedder_and_without_a_common_word_the_slate_is_empty(
    bank: Bank, server: OpenAIServer, served: OpenAIEmbedder
):
    await bank.keep("tune the piano")
    await bank.work(served)
    server.fault = Fault.STATUS_500
    slate = await bank.ask("guitar", served)
    assert (slate.choices, slate.mode, slate.degraded) == ([], "empty", ["embedder"])


async def test_a_query_with_nothing_to_embed_is_searched_by_keywords(bank: Bank):
    await bank.keep("tune the piano")
    await bank.work()
    slate = await bank.ask("   ")
    assert (slate.choices, slate.degraded) == ([], ["query_not_embeddable"])


async def test_a_case_without_a_vector_is_found_by_its_words(bank: Bank, server: OpenAIServer, served: OpenAIEmbedder):
    await bank.keep("   ", plan=["tune the piano"])
    await bank.keep("mow the lawn")
    await bank.work(served)
    slate = await bank.ask("mow the lawn, tune", served)
    found = {choice.row.task: choice.row for choice in slate.choices}
    assert (found["   "].keyword_rank, found["   "].semantic_rank) == (2, None)
    assert (found["mow the lawn"].keyword_rank, found["mow the lawn"].semantic_rank) == (1, 1)
    assert slate.mode == "hybrid"


# Another model


@pytest.mark.parametrize("pgvector", ["auto", "off"])
async def test_vectors_of_another_model_are_ignored(
    pgvector: str, banks: dict[str, Bank], server: OpenAIServer, served: OpenAIEmbedder
):
    bank = replace(banks[pgvector], user=f"user-{uuid4()}")
    other = named(server, "other")
    for task in TASKS[:6]:
        await bank.keep(task)
    await bank.work(served)
    slate = await bank.ask("an old guitar", other)
    assert slate.mode == "keyword"
    assert "embedding_model" in slate.degraded
    assert ("pgvector" in slate.degraded) == (pgvector == "off")
    assert [(c.row.task, c.row.semantic_rank, c.row.similarity) for c in slate.choices] == [
        ("restart an old guitar", None, None)
    ]
    await bank.keep("sell an old guitar")
    await bank.work(other)  # its vector waits, in its own space, for the switch
    slate = await bank.ask("an old guitar", other)
    assert {(c.row.task, c.row.semantic_rank) for c in slate.choices} == {
        ("restart an old guitar", None),
        ("sell an old guitar", None),
    }
    back = await bank.ask("an old guitar", served, k=10)
    assert back.mode == "hybrid"
    assert {c.row.task for c in back.choices if c.row.semantic_rank is None} == {"sell an old guitar"}
    async with bank.runtime.database.as_user(bank.user, datetime.now(UTC)) as connection:
        switched = update(profiles).where(profiles.c.user_sub == bank.user).values(embedding_model=other.model)
        await connection.execute(switched)
    after = await bank.ask("an old guitar", other, k=10)
    assert (after.mode, "embedding_model" in after.degraded) == ("hybrid", False)
    assert {c.row.task for c in after.choices if c.row.semantic_rank} == {"sell an old guitar"}
    await other.aclose()


# Without the worker


async def test_without_the_worker_what_was_ready_before_is_found(bank: Bank):
    await bank.keep("tune the piano")
    await bank.work()
    await bank.keep("tune the piano of the neighbours")
    slate = await bank.ask("piano")
    assert [choice.row.task for choice in slate.choices] == ["tune the piano"]
    assert slate.mode == "hybrid"
