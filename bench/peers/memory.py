"""A memory as the benchmark sees it, and the simplest one: vectors of the tasks that were solved."""

import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import psutil

from app.providers.wordllama import MAX_CHARS, WordLlamaEmbedder
from retrieval.ports import Vectors

if TYPE_CHECKING:  # a start of another memory must not wait for parts of casebank
    from writer.run import FinishedRun

FIRST = 4
"""Runs of an answer."""
USERS = tuple(f"user-{number:02}" for number in range(20))
"""Names of one length, or a search by prefix would find user-10 for user-1."""


@dataclass(frozen=True, slots=True, eq=False)
class PastRun:
    """A recorded run.

    Attributes:
        user: one of USERS; each is two or three customers of the recording.
        task: name of the task.
        effects: the state-changing tools that succeeded.
        gold: the state-changing tools of the right answer to the task.
        retained: the run as casebank retains it.
        document: the same as JSON in a text, which the other memories keep.
    """

    number: int
    user: str
    task: str
    effects: Counter[str]
    gold: Counter[str]
    retained: "FinishedRun"
    document: str

    @property
    def text(self) -> str:
        """Returns the task in the customer's words."""
        return self.retained.task

    @property
    def succeeded(self) -> bool:
        """Returns whether the run went well."""
        return self.retained.outcome == "success"


def _at_once() -> None:
    pass


def _own_bytes() -> int:
    resident: int = psutil.Process().memory_info().rss
    return resident


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory of runs, empty at first; several threads call it at once.

    Attributes:
        add: keeps a run of its user.
        search: the numbers of the FIRST runs of a user that help with a task, the best first.
        settle: waits until every added run can be found.
        rest: waits until the work is done that may follow later.
        processor_s: the processor time so far without the database's; by default that of this process.
        resident_bytes: the resident memory without the database's; by default that of this process.
        began: the time at which its service was started; 0 without one.
    """

    add: Callable[[PastRun], None]
    search: Callable[[str, str], list[int]]
    settle: Callable[[], None] = _at_once
    rest: Callable[[], None] = _at_once
    processor_s: Callable[[], float] = time.process_time
    resident_bytes: Callable[[], int] = _own_bytes
    began: float = 0.0


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
