"""A memory as the benchmark sees it, and the simplest one: vectors of the tasks that were solved."""

import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np

from app.providers.wordllama import MAX_CHARS, WordLlamaEmbedder
from bench.peers.runs import PastRun
from retrieval.ports import Vectors

FIRST = 4
"""Runs of an answer."""


class Memory(ABC):
    """A memory of runs; several threads call it at once."""

    @abstractmethod
    def add(self, run: PastRun) -> None:
        """Keeps a run of its user; returns when the memory acknowledges it."""

    @abstractmethod
    def search(self, user: str, text: str) -> list[int]:
        """Returns the numbers of the FIRST runs of the user that help with a task, the best first."""

    def settle(self) -> None:  # noqa: B027 - most memories have nothing to wait for
        """Waits until every run that was added can be found; at once, if an added run can be."""

    def processor_s(self) -> float:
        """Returns the processor time of the memory so far, without its database's; by default of this process."""
        return time.process_time()


class TaskVectors(Memory):
    """Vectors of the tasks of runs that succeeded, compared one by one."""

    def __init__(self) -> None:
        self._vectors = defaultdict[str, list[Vectors]](list)
        self._numbers = defaultdict[str, list[int]](list)

    def add(self, run: PastRun) -> None:
        """Keeps the vector of the task, if the run succeeded."""
        if run.succeeded:
            self._vectors[run.user].append(vector(run.text))
            self._numbers[run.user].append(run.number)

    def search(self, user: str, text: str) -> list[int]:
        """Returns the runs of the nearest tasks."""
        nearness = np.array(self._vectors[user]) @ vector(text) if user in self._vectors else np.empty(0)
        return [self._numbers[user][place] for place in np.argsort(-nearness, kind="stable")[:FIRST]]


@asynccontextmanager
async def task_vectors(_home: Path) -> AsyncIterator[Memory]:
    """Yields the simplest memory, empty."""
    yield TaskVectors()


def vector(text: str) -> Vectors:
    """Returns the unit vector of a text, (256,), of the embedder that all memories use."""
    row: Vectors = _EMBEDDER.vectors([text[:MAX_CHARS]])[0]
    return row


_EMBEDDER = WordLlamaEmbedder()
