"""The harness of every arm: one adapter's environment beside one user's memory."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import httpx
from rich.console import Console
from rich.progress import track

from app.demo.memory import AgentMemory, HttpMemory
from examples.experiment.episode import BudgetedEnvironment, Episode, EpisodeOutcome, play
from examples.world import Adapter, MemoryUnusable, Task

TOKEN_BUDGET = 8000
"""Token budget of a slate, large enough for any K."""


@dataclass(frozen=True, slots=True)
class TestTasks:
    """The test tasks and, once known, the episode of each without memory."""

    tasks: Sequence[Task]
    alone: Mapping[str, Episode] = field(default_factory=dict)


class Harness:
    """One adapter's environment beside one user's memory, which should be empty."""

    def __init__(
        self, adapter: Adapter, world: BudgetedEnvironment, client: httpx.AsyncClient, console: Console | None
    ) -> None:
        self.adapter = adapter
        self._world = world
        self._client = client
        self._console = console
        self.errors: list[str] = []
        """Errors of memory."""

    async def bank(self, name: str, k: int) -> HttpMemory:
        """Returns the memory of that name, without exploration, so that a slate depends only on the bank.

        Raises:
            MemoryUnusable: the service cannot be reached, or refuses.
        """
        agent = f"experiment-{self.adapter.name}-{name}"
        try:
            settings = await self._client.put(f"/v1/profiles/{agent}", json={"explore": 0.0, "canary": 0.0})
            settings.raise_for_status()
        except httpx.HTTPError as error:
            raise MemoryUnusable(f"no memory to experiment with: {error!r}") from error
        nearest = self.adapter.min_similarity
        memory = HttpMemory(self._client, agent=agent, k=k, token_budget=TOKEN_BUDGET, min_similarity=nearest)
        memory.errors = self.errors
        return memory

    async def pin_procedures(self, memory: HttpMemory) -> None:
        """Pins every procedure of the memory, so that later runs revise none.

        Raises:
            MemoryUnusable: the service refuses.
        """
        try:
            cursor: str | None = ""
            while cursor is not None:
                params = {"agent": memory.agent, "limit": "200"} | ({"cursor": cursor} if cursor else {})
                page = (await self._client.get("/v1/procedures", params=params)).raise_for_status().json()
                for each in page["procedures"]:
                    wanted = {"version": each["version"], "pinned": True}
                    if not each["pinned"]:
                        (await self._client.post(f"/v1/procedures/{each['id']}/pin", json=wanted)).raise_for_status()
                cursor = page["next_cursor"]
        except httpx.HTTPError as error:
            raise MemoryUnusable(f"its procedures cannot be pinned: {error!r}") from error

    async def practise(self, name: str, memory: AgentMemory, tasks: Sequence[Task]) -> list[EpisodeOutcome]:
        """Returns the outcomes of the tasks, in their order; each is retained before the next."""
        outcomes = []
        for task in self._watch(tasks, name):
            outcomes.append(await play(self.adapter, self._world, task, memory))
            await fill(memory, outcomes[-1:])
        return outcomes

    async def test(self, name: str, memory: AgentMemory, tested: TestTasks) -> list[Episode]:
        """Returns the episodes of the tasks with a memory that retains none of them."""
        return [
            (await play(self.adapter, self._world, task, memory, tested.alone.get(task.id))).episode
            for task in self._watch(tested.tasks, name)
        ]

    def _watch(self, tasks: Sequence[Task], name: str) -> Iterable[Task]:
        quiet = self._console is None or not self._console.is_terminal
        return track(tasks, name, console=self._console, disable=quiet, transient=True)


async def fill(memory: AgentMemory, outcomes: Iterable[EpisodeOutcome]) -> None:
    """Retains the runs, each ready before the next."""
    for outcome in outcomes:
        if outcome.run is not None:
            await memory.retain(outcome.run, outcome.slate)
