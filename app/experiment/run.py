"""The experiment itself: practice, then the same test tasks without memory and with several banks."""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import httpx
from rich.console import Console
from rich.progress import track

from app.agents.memory import AgentRun, HttpMemory, Memory, NoMemory, RetrievedCases
from app.agents.world import Adapter, MemoryUnusable, Size, Task
from app.experiment.episode import BudgetedEnvironment, Episode, EpisodeOutcome, play
from app.experiment.prediction import Prediction, predictions
from app.experiment.report import Matrix, Report

TOKEN_BUDGET = 8000
"""All of a slate is shown and paid for, however large K is."""


@dataclass(frozen=True, slots=True)
class TestTasks:
    """The test tasks and, once that is known, what became of each without memory."""

    tasks: Sequence[Task]
    alone: Mapping[str, Episode] = field(default_factory=dict)


class Harness:
    """One adapter's environment beside one user's memory, which should be empty."""

    def __init__(
        self, adapter: Adapter, world: BudgetedEnvironment, client: httpx.AsyncClient, console: Console | None
    ) -> None:
        self._adapter = adapter
        self._world = world
        self._client = client
        self._console = console
        self.errors: list[str] = []
        """What went wrong with memory."""

    async def bank(self, name: str, k: int) -> HttpMemory:
        """Returns the memory of that name; it explores nothing, so that a slate depends on the bank alone.

        Raises:
            MemoryUnusable: the service cannot be reached, or refuses.
        """
        agent = f"experiment-{self._adapter.name}-{name}"
        try:
            settings = await self._client.put(f"/v1/profiles/{agent}", json={"explore": 0.0, "canary": 0.0})
            settings.raise_for_status()
        except httpx.HTTPError as error:
            raise MemoryUnusable(f"no memory to experiment with: {error!r}") from error
        nearest = self._adapter.min_similarity
        memory = HttpMemory(self._client, agent=agent, k=k, token_budget=TOKEN_BUDGET, min_similarity=nearest)
        memory.errors = self.errors
        return memory

    async def practise(self, name: str, memory: Memory, tasks: Sequence[Task]) -> list[EpisodeOutcome]:
        """Returns what became of the tasks, in their order; each is retained before the next."""
        outcomes = []
        for task in self._watch(tasks, name):
            outcomes.append(await play(self._adapter, self._world, task, memory))
            await fill(memory, outcomes[-1:])
        return outcomes

    async def test(self, name: str, memory: Memory, tested: TestTasks) -> list[Episode]:
        """Returns what became of the tasks with a memory that stays as it is."""
        return [
            (await play(self._adapter, self._world, task, memory, tested.alone.get(task.id))).episode
            for task in self._watch(tested.tasks, name)
        ]

    def _watch(self, tasks: Sequence[Task], name: str) -> Iterable[Task]:
        quiet = self._console is None or not self._console.is_terminal
        return track(tasks, name, console=self._console, disable=quiet, transient=True)


async def fill(memory: Memory, outcomes: Iterable[EpisodeOutcome]) -> None:
    """Retains the runs, each ready before the next."""
    for outcome in outcomes:
        if outcome.run is not None:
            await memory.retain(outcome.run, outcome.slate)


async def run_experiment(
    adapter: Adapter, client: httpx.AsyncClient, size: Size, console: Console | None = None
) -> Report:
    """Says what is predicted, runs every arm, and returns the report.

    The agent practises on some tasks without memory, and on the same tasks with a memory that it fills as it goes.
    That memory then stays as it is while other tasks of the same families are tested: without memory, with it
    for each K, and with banks that hold the practice of a single family.

    Raises:
        EnvironmentMissing: this machine lacks what the environment needs.
        MemoryUnusable: the service cannot be reached, or refuses.
    """
    predicted = predictions(size.practice * len(adapter.families))
    _say(adapter, predicted, console)
    async with adapter.environment() as environment:
        drawn = [await adapter.tasks(environment, family, size) for family in adapter.families]
        practice = [task for each in drawn for task in each.practice]
        random.Random(size.seed).shuffle(practice)
        test = [task for each in drawn for task in each.test]
        harness = Harness(adapter, BudgetedEnvironment(environment, adapter.budget), client, console)
        practised = await harness.practise("practice without memory", NoMemory(), practice)
        learning = await harness.practise("practice with memory", await harness.bank("all", size.k), practice)
        without = await harness.test("test without memory", NoMemory(), TestTasks(test))
        tested = TestTasks(test, {episode.task_id: episode for episode in without})
        shown = await adapter.demonstrations(environment, practice)
        return Report(
            adapter=adapter,
            size=size,
            predictions=predicted,
            practice=(_episodes(practised), _episodes(learning)),
            sweep={0: without} | await _sweep(harness, tested, size),
            matrix=await _transfer(harness, practised, tested, size.k),
            experts=await _expert(harness, shown, tested, size.k),
            memory_errors=harness.errors,
        )


def _say(adapter: Adapter, predicted: Iterable[Prediction], console: Console | None) -> None:
    if console is not None:
        console.print(f"{adapter.name}: predicted before the run", style="bold")
        for each in predicted:
            console.print(f"  {each.text}", markup=False, highlight=False)


async def _sweep(harness: Harness, tested: TestTasks, size: Size) -> dict[int, list[Episode]]:
    """Returns the test with each K above 0, on the bank as it is."""
    sizes = sorted({size.k, *size.ks} - {0})
    return {k: await harness.test(f"test, K = {k}", await harness.bank("all", k), tested) for k in sizes}


async def _transfer(harness: Harness, practised: Sequence[EpisodeOutcome], tested: TestTasks, k: int) -> Matrix:
    """Returns the test with a bank for each family, which holds what was practised of that family without memory."""
    matrix = {}
    for family in dict.fromkeys(task.family for task in tested.tasks):
        memory = await harness.bank(family, k)
        await fill(memory, [outcome for outcome in practised if outcome.task.family == family])
        matrix[family] = await harness.test(f"test, bank of {family}", memory, tested)
    return matrix


async def _expert(harness: Harness, shown: Sequence[AgentRun], tested: TestTasks, k: int) -> list[Episode]:
    """Returns the test with a bank of an expert's runs; none where there are none."""
    if not shown:
        return []
    memory = await harness.bank("expert", k)
    for run in shown:
        await memory.retain(run, RetrievedCases())
    return await harness.test("test, expert's bank", memory, tested)


def _episodes(outcomes: Iterable[EpisodeOutcome]) -> list[Episode]:
    return [outcome.episode for outcome in outcomes]
