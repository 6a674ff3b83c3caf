"""Other memories, where their packages are installed: they keep a run's document and search by its task's vector."""

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.bank import created
from bench.peers.memory import FIRST, Memory, vector
from bench.peers.runs import USERS, PastRun

CONNECTIONS = 16
"""Connections of a pool, one for each client."""
DIMENSION = 256
SOLVED = {"succeeded": True}
"""Filter of a search."""


@dataclass
class LangGraph(Memory):
    """A PostgresStore of LangGraph."""

    store: Any

    def add(self, run: PastRun) -> None:
        """Puts the run under its number in the user's namespace."""
        value = {"task": run.text, "succeeded": run.succeeded, "document": run.document}
        self.store.put((run.user,), str(run.number), value)

    def search(self, user: str, text: str) -> list[int]:
        """Searches the user's namespace."""
        return [int(item.key) for item in self.store.search((user,), query=text, filter=SOLVED, limit=FIRST)]


@asynccontextmanager
async def langgraph(home: Path) -> AsyncIterator[Memory]:
    """Yields an empty PostgresStore, which indexes the field of the task."""
    from langgraph.store.postgres import PostgresStore  # noqa: PLC0415 - may be missing

    def embed(texts: Sequence[str]) -> list[list[float]]:
        return [vector(text).tolist() for text in texts]

    url = (await created(home, "peers_langgraph")).replace("+asyncpg", "")
    pool = {"min_size": 1, "max_size": CONNECTIONS}
    index = {"dims": DIMENSION, "embed": embed, "fields": ["task"]}
    with PostgresStore.from_conn_string(url, pool_config=pool, index=index) as store:
        store.setup()
        yield LangGraph(store)


@dataclass
class Chroma(Memory):
    """Collections of Chroma, one for each user."""

    collections: dict[str, Any]

    def add(self, run: PastRun) -> None:
        """Adds the run's document with the vector of its task."""
        self.collections[run.user].add(
            ids=[str(run.number)],
            embeddings=[vector(run.text)],
            documents=[run.document],
            metadatas=[{"succeeded": run.succeeded}],
        )

    def search(self, user: str, text: str) -> list[int]:
        """Queries the user's collection."""
        answer = self.collections[user].query(query_embeddings=[vector(text)], n_results=FIRST, where=SOLVED)
        return [int(number) for number in answer["ids"][0]]


@asynccontextmanager
async def chroma(home: Path) -> AsyncIterator[Memory]:
    """Yields empty collections of a Chroma on the disk, compared by cosine."""
    import chromadb  # noqa: PLC0415 - may be missing

    settings = chromadb.Settings(anonymized_telemetry=False)
    client = chromadb.PersistentClient(str(home / "chroma"), settings)
    cosine = {"hnsw": {"space": "cosine"}}
    yield Chroma(
        {user: client.create_collection(user, embedding_function=None, configuration=cosine) for user in USERS}
    )


@dataclass
class Mem0(Memory):
    """A Memory of mem0 that keeps texts as they are, without a language model."""

    memory: Any

    def add(self, run: PastRun) -> None:
        """Adds the task as a memory of the user, with the run beside it."""
        beside = {"number": run.number, "succeeded": run.succeeded, "document": run.document}
        self.memory.add(run.text, user_id=run.user, metadata=beside, infer=False)

    def search(self, user: str, text: str) -> list[int]:
        """Searches the user's memories."""
        answer = self.memory.search(text, top_k=FIRST, filters={"user_id": user} | SOLVED)
        return [result["metadata"]["number"] for result in answer["results"]]


class Mem0Embedding:
    """The embedder of all memories as mem0 calls one."""

    def embed(self, text: str, _action: str | None = None) -> list[float]:
        """Returns the vector of a text."""
        row: list[float] = vector(text).tolist()
        return row

    def embed_batch(self, texts: Sequence[str], _action: str | None = None) -> list[list[float]]:
        """Returns the vectors of texts."""
        return [self.embed(text) for text in texts]


@asynccontextmanager
async def mem0(home: Path) -> AsyncIterator[Memory]:
    """Yields an empty Memory of mem0 on pgvector, which sends nothing anywhere."""
    os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(home / "mem0")}  # read at the import
    from mem0 import Memory as Mem0Memory  # noqa: PLC0415 - may be missing

    url = (await created(home, "peers_mem0")).replace("+asyncpg", "")
    pgvector = {"connection_string": url, "embedding_model_dims": DIMENSION, "maxconn": CONNECTIONS}
    unused = {"provider": "openai", "config": {"api_key": "none"}}
    memory = Mem0Memory.from_config(
        {"vector_store": {"provider": "pgvector", "config": pgvector}, "llm": unused, "embedder": unused}
    )
    memory.embedding_model = Mem0Embedding()
    yield Mem0(memory)
