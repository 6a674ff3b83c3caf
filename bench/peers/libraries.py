"""Other memories, where their packages are installed: they keep a run's document and search by its task's vector."""

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from app.providers.wordllama import WordLlamaEmbedder
from bench.database import created
from bench.peers.memory import FIRST, USERS, Memory, PastRun, vector

CONNECTIONS = 16
"""Connections of a pool, one for each client."""
SOLVED = {"succeeded": True}
"""Filter of a search."""


@asynccontextmanager
async def langgraph(home: Path) -> AsyncIterator[Memory]:
    """Yields a PostgresStore of LangGraph, with a namespace for each user."""
    from langgraph.store.postgres import PostgresStore  # noqa: PLC0415 - may be missing

    def add(run: PastRun) -> None:
        value = {"task": run.text, "succeeded": run.succeeded, "document": run.document}
        store.put((run.user,), str(run.number), value)

    def search(user: str, text: str) -> list[int]:
        return [int(item.key) for item in store.search((user,), query=text, filter=SOLVED, limit=FIRST)]

    url = (await created(home, "peers_langgraph")).replace("+asyncpg", "")
    pool = {"min_size": 1, "max_size": CONNECTIONS}
    index = {"dims": WordLlamaEmbedder.dimension, "embed": _Embedder().embed_batch, "fields": ["task"]}
    with PostgresStore.from_conn_string(url, pool_config=pool, index=index) as store:
        store.setup()
        yield Memory(add, search)


@asynccontextmanager
async def chroma(home: Path) -> AsyncIterator[Memory]:
    """Yields a Chroma on the disk, with a collection for each user."""
    import chromadb  # noqa: PLC0415 - may be missing

    client = chromadb.PersistentClient(str(home / "chroma"), chromadb.Settings(anonymized_telemetry=False))
    cosine = {"hnsw": {"space": "cosine"}}
    of = {user: client.get_or_create_collection(user, embedding_function=None, configuration=cosine) for user in USERS}

    def add(run: PastRun) -> None:
        succeeded = {"succeeded": run.succeeded}
        of[run.user].add(str(run.number), vector(run.text), metadatas=succeeded, documents=run.document)

    def search(user: str, text: str) -> list[int]:
        found = of[user].query(vector(text), n_results=FIRST, where=SOLVED)
        return [int(number) for number in found["ids"][0]]

    yield Memory(add, search)


@asynccontextmanager
async def mem0(home: Path) -> AsyncIterator[Memory]:
    """Yields a Memory of mem0 on pgvector that keeps tasks as they are: without a language model, and no telemetry."""
    os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(home / "mem0")}  # read at the import
    import mem0 as library  # noqa: PLC0415 - may be missing

    url = (await created(home, "peers_mem0")).replace("+asyncpg", "")
    dimension = WordLlamaEmbedder.dimension
    pgvector = {"connection_string": url, "embedding_model_dims": dimension, "maxconn": CONNECTIONS}
    unused = {"provider": "openai", "config": {"api_key": "none"}}
    store = {"provider": "pgvector", "config": pgvector}
    memory = library.Memory.from_config({"vector_store": store, "llm": unused, "embedder": unused})
    memory.embedding_model = _Embedder()

    def add(run: PastRun) -> None:
        beside = {"number": run.number, "succeeded": run.succeeded, "document": run.document}
        memory.add(run.text, user_id=run.user, metadata=beside, infer=False)

    def search(user: str, text: str) -> list[int]:
        found = memory.search(text, top_k=FIRST, filters={"user_id": user} | SOLVED)
        return [result["metadata"]["number"] for result in found["results"]]

    yield Memory(add, search)


class _Embedder:
    """The embedder of all memories as mem0 calls one."""

    def embed(self, text: str, _action: str | None = None) -> list[float]:
        return self.embed_batch([text])[0]

    def embed_batch(self, texts: Sequence[str], _action: str | None = None) -> list[list[float]]:
        return [vector(text).tolist() for text in texts]
