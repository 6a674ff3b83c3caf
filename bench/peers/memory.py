"""A memory as the benchmark sees it, and the simplest one: vectors of the tasks that were solved."""

import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from app.providers.wordllama import MAX_CHARS, WordLlamaEmbedder
from bench.peers.runs import PastRun
from retrieval.ports import Vectors

FIRST = 4
"""Runs of an answer."""


def _at_once() -> None:
    pass


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory of runs, empty at first; several threads call it at once.

    Attributes:
        add: keeps a run of its user.
        search: the numbers of the FIRST runs of a user that help with a task, the best first.
        settle: waits until every added run can be found.
        rest: waits until the work is done that may follow later.
        processor_s: the processor time so far without the database's; by default that of this process.
    """

    add: Callable[[PastRun], None]
    search: Callable[[str, str], list[int]]
    settle: Callable[[], None] = _at_once
    rest: Callable[[], None] = _at_once
    processor_s: Callable[[], float] = time.process_time


@asynccontextmanager
async def task_vectors(_home: Path) -> AsyncIterator[Memory]:
    """Yields the simplest memory: it compares the vectors of the tasks that were solved one by one."""
    vectors, numbers = defaultdict[str, list[Vectors]](list), defaultdict[str, list[int]](list)

    def add(run: PastRun) -> None:
        if run.succeeded:
            vectors[run.user].append(vector(run.text))
            numbers[run.user].append(run.number)

    def search(user: str, text: str) -> list[int]:
        nearness = np.reshape(vectors[user], (-1, WordLlamaEmbedder.dimension)) @ vector(text)
        return [numbers[user][place] for place in np.argsort(-nearness, kind="stable")[:FIRST]]

    yield Memory(add, search)


def vector(text: str) -> Vectors:
    """Returns the unit vector of a text, (256,), of the embedder that all memories use."""
    row: Vectors = _EMBEDDER.vectors([text[:MAX_CHARS]])[0]
    return row


_EMBEDDER = WordLlamaEmbedder()
