"""The experiment itself: practice, then the same test tasks without memory and with several banks."""

import random
from collections.abc import Iterable, Sequence

import httpx
from rich.console import Console

from app.demo.memory import AgentRun, NoMemory, RetrievedCases
from examples.experiment.episode import BudgetedEnvironment, Episode, EpisodeOutcome
from examples.experiment.harness import Harness, TestTasks, fill
from examples.experiment.prediction import Prediction, predictions
from examples.experiment.reflection import reflect
from examples.experiment.report import Matrix, Report
from examples.world import Adapter, Size


async def run_experiment(
    adapter: Adapter, client: httpx.AsyncClient, size: Size, console: Console | None = None
) -> Report:
    """Prints the predictions, runs every arm, and returns the report.

    The agent practises on some tasks without memory, and on the same tasks with a memory that it fills on the way. Then
    other tasks of the same families are tested, and not retained: without memory, with it for each K, and with banks
    that hold the practice of a single family. If the environment can change its rules, two banks of that practice meet
    the new ones: in one of them failed runs revise procedures.

    Raises:
        EnvironmentMissing: this machine lacks what the environment needs.
        MemoryUnusable: the service cannot be reached, or refuses.
    """
    predicted = predictions(size.practice)
    _print_predictions(adapter, predicted, console)
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
            reflection=await reflect(harness, environment, learning, size),
            memory_errors=harness.errors,
        )


def _print_predictions(adapter: Adapter, predicted: Iterable[Prediction], console: Console | None) -> None:
    if console is not None:
        console.print(f"{adapter.name}: predicted before the run", style="bold")
        for each in predicted:
            console.print(f"  {each.text}", markup=False, highlight=False)


async def _sweep(harness: Harness, tested: TestTasks, size: Size) -> dict[int, list[Episode]]:
    """Returns the test with each K above 0, on the bank of the practice."""
    sizes = sorted({size.k, *size.ks} - {0})
    return {k: await harness.test(f"test, K = {k}", await harness.bank("all", k), tested) for k in sizes}


async def _transfer(harness: Harness, practised: Sequence[EpisodeOutcome], tested: TestTasks, k: int) -> Matrix:
    """Returns the test with a bank for each family, of that family's practice without memory."""
    matrix = {}
    for family in dict.fromkeys(task.family for task in tested.tasks):
        memory = await harness.bank(family, k)
        await fill(memory, [outcome for outcome in practised if outcome.task.family == family])
        matrix[family] = await harness.test(f"test, bank of {family}", memory, tested)
    return matrix


async def _expert(harness: Harness, shown: Sequence[AgentRun], tested: TestTasks, k: int) -> list[Episode]:
    """Returns the test with a bank of an expert's runs, or no episodes without such runs."""
    if not shown:
        return []
    memory = await harness.bank("expert", k)
    for run in shown:
        await memory.retain(run, RetrievedCases())
    return await harness.test("test, expert's bank", memory, tested)


def _episodes(outcomes: Iterable[EpisodeOutcome]) -> list[Episode]:
    return [outcome.episode for outcome in outcomes]
