"""Victims of the kills: a shuffled deck, and the processes of each."""

import asyncio
import os
import random
import re
import signal
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench.faults.supervised import Supervised

_DECK = {
    "backend": 6,
    "service": 4,
    "worker": 3,
    "postmaster": 3,
    "checkpointer": 1,
    "walwriter": 1,
    "helper": 1,  # another process of Postgres's own
    "everything": 1,  # service, worker and postmaster at once
}
"""Kills of each victim among twenty: most go to the processes that the kernel kills when memory is short."""

_POLL_S = 0.02


VICTIMS = tuple(_DECK)


def deck(kills: int, seed: int, only: Collection[str] = VICTIMS) -> list[str]:
    """Returns the victims in order: each twenty contain every victim as often as the deck.

    Args:
        kills: number of kills.
        seed: seed of the order.
        only: victims to choose from, at least one.
    """
    rng = random.Random(seed)
    order: list[str] = []
    while len(order) < kills:
        cards = [victim for victim, count in _DECK.items() for _ in range(count) if victim in only]
        rng.shuffle(cards)
        order += cards
    return order[:kills]


@dataclass(frozen=True)
class Victims:
    """The processes that can be killed, looked up for each kill.

    Attributes:
        data: the folder of Postgres's data.
        rng: random choice among several backends or helpers.
    """

    service: Supervised
    worker: Supervised
    data: Path
    rng: random.Random

    async def kill(self, victim: str) -> None:
        """Kills the victim with -9, after waiting until it exists."""
        if victim in {"service", "everything"}:
            await self.service.kill()
        if victim in {"worker", "everything"}:
            await self.worker.kill()
        if victim in {"postmaster", "everything"}:
            await self._kill_one(lambda: [psutil.Process(self._postmaster())])
        if victim in _TITLES:
            await self._kill_one(lambda: self._children(_TITLES[victim]))

    async def _kill_one(self, find: Callable[[], list[psutil.Process]]) -> None:
        while True:
            with suppress(psutil.Error, OSError, ValueError, IndexError):
                os.kill(self.rng.choice(find()).pid, signal.SIGKILL)
                return
            await asyncio.sleep(_POLL_S)

    def _postmaster(self) -> int:
        return int((self.data / "postmaster.pid").read_text().split()[0])

    def _children(self, title: str) -> list[psutil.Process]:
        """Returns the server's processes whose title matches, by pid."""
        children = sorted(psutil.Process(self._postmaster()).children(), key=lambda child: child.pid)
        return [child for child in children if re.search(title, " ".join(child.cmdline()))]


_TITLES = {
    "backend": r"postgres: \S+ casebank \[local\]",
    "checkpointer": "postgres: checkpointer",
    "walwriter": "postgres: walwriter",
    "helper": "postgres: (background writer|io worker|autovacuum launcher|logical replication launcher)",
}
"""Titles of Postgres processes; a backend's names the role, the database and ``[local]``."""
