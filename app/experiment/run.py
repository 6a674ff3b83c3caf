"""The experiment itself: practice, then the same test tasks without memory and with several banks."""

import random
from collections.abc import Iterable, Sequence

import httpx
from rich.console import Console
from rich.progress import track

from app.demo.memory import HttpMemory, Memory, NoMemory
from app.experiment.adapter import Adapter, Task
from app.experiment.episode import Episode, Outcome, Watched, play
from app.experiment.prediction import predictions
from app.experiment.report import Matrix, Report, Size

TOKEN_BUDGET = 8000
"""All of a slate is shown and paid for, however large K is."""


class Laboratory:
    """One adapter's environment beside one user's memory, which should be empty."""

    def __init__(self, adapter: Adapter, world: Watched, client: httpx.AsyncClient, console: Console | None) -> None:
        self._adapter = adapter
        self._world = world
        self._client = client
        self._console = console
        self.errors: list[str] = []
        """What went wrong with memory."""

    async def bank(self, name: str, k: int) -> HttpMemory:
        """Returns the memory of that name; nothing is tried out there, so that a slate depends on the bank alone."""
        agent = f"experiment-{self._adapter.name}-{name}"
        settings = await self._client.put(f"/v1/profiles/{agent}", json={"explore": 0.0, "canary": 0.0})
        settings.raise_for_status()
        nearest = self._adapter.min_similarity
        memory = HttpMemory(self._client, agent=agent, k=k, token_budget=TOKEN_BUDGET, min_similarity=nearest)
        memory.errors = self.errors
        return memory

    async def arm(self, name: str, memory: Memory, tasks: Sequence[Task], *, retain: bool = False) -> list[Outcome]:
        """Returns what became of the tasks, in their order, with that memory."""
        quiet = self._console is None or not self._console.is_terminal
        watched = track(tasks, name, console=self._console, disable=quiet, transient=True)
        outcomes = []
        for task in watched:
            outcomes.append(await play(self._adapter, self._world, task, memory, task.id))
            if retain:
                await fill(memory, outcomes[-1:])
        return outcomes


async def fill(memory: Memory, outcomes: Iterable[Outcome]) -> None:
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
    """
    tasks = {
        family: adapter.tasks(family, size.seed, practice=size.practice, test=size.test) for family in adapter.families
    }
    foretold = predictions(size.practice * len(tasks))
    if console is not None:
        console.print(f"[bold]{adapter.name}[/bold]: predicted before the run")
        for each in foretold:
            console.print(f"  {each.text}", markup=False, highlight=False)
    practice = [task for each in tasks.values() for task in each.practice]
    random.Random(size.seed).shuffle(practice)
    test = [task for each in tasks.values() for task in each.test]
    async with adapter.environment() as environment:
        laboratory = Laboratory(adapter, Watched(environment, adapter.budget), client, console)
        alone = await laboratory.arm("practice without memory", NoMemory(), practice)
        memory = await laboratory.bank("all", size.k)
        learning = await laboratory.arm("practice with memory", memory, practice, retain=True)
        sweep = await _sweep(laboratory, test, size)
        matrix = await _transfer(laboratory, alone, test, size.k)
    return Report(
        adapter=adapter,
        size=size,
        predictions=foretold,
        practice=(_episodes(alone), _episodes(learning)),
        sweep=sweep,
        matrix=matrix,
        memory_errors=laboratory.errors,
    )


async def _sweep(laboratory: Laboratory, test: Sequence[Task], size: Size) -> dict[int, list[Episode]]:
    """Returns the test with each K, on the bank as it is; 0 is without memory."""
    sweep = {}
    for k in sorted({0, size.k, *size.ks}):
        memory = await laboratory.bank("all", k) if k else NoMemory()
        sweep[k] = _episodes(await laboratory.arm(f"test, K = {k}", memory, test))
    return sweep


async def _transfer(laboratory: Laboratory, practised: Sequence[Outcome], test: Sequence[Task], k: int) -> Matrix:
    """Returns the test with a bank for each family, which holds what was practised of that family without memory."""
    matrix = {}
    for family in dict.fromkeys(task.family for task in test):
        memory = await laboratory.bank(family, k)
        await fill(memory, [outcome for outcome in practised if outcome.task.family == family])
        matrix[family] = _episodes(await laboratory.arm(f"test, bank of {family}", memory, test))
    return matrix


def _episodes(outcomes: Iterable[Outcome]) -> list[Episode]:
    return [outcome.episode for outcome in outcomes]
