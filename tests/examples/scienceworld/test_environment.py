"""ScienceWorld as an environment; without Java it is missing by name."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from examples.experiment.run import run_experiment
from examples.scienceworld.environment import ScienceWorld, ScienceWorldEnv, World, shortened
from examples.world import EnvironmentMissing
from tests.service import Service

needs_scienceworld = pytest.mark.skipif(
    ScienceWorldEnv is None or shutil.which("java") is None,
    reason="ScienceWorld needs Java and casebank[scienceworld]",
)


@pytest.fixture(scope="module")
async def world() -> AsyncIterator[World]:
    async with ScienceWorld().environment() as world:
        yield world


@needs_scienceworld
async def test_an_experiment_on_scienceworld_runs_to_its_end(service: Service, world: World):
    class Short(ScienceWorld):
        families, budget = ("find-non-living-thing",), 10

        @asynccontextmanager
        async def environment(self) -> AsyncIterator[World]:
            yield world

    adapter, user = Short(), await service.user()
    size = replace(adapter.size, practice=1, test=1, ks=(0, 4))
    report = await run_experiment(adapter, user.http, size)
    assert not report.crashes
    assert len(report.tested) == len(report.experts) == 1
    assert all(0 < each.steps <= adapter.budget for each in report.sweep[0])


@needs_scienceworld
async def test_the_score_is_scienceworld_s_own_and_its_solution_earns_all_of_it(world: World):
    adapter = ScienceWorld()
    tasks = await adapter.tasks(world, "find-animal", replace(adapter.size, practice=1, test=1))
    (task,) = tasks.practice
    assert task.id not in {other.id for other in tasks.test}
    (run,) = await adapter.demonstrations(world, [task])
    seen = await world.reset(task)
    assert "teleport to kitchen" in seen.valid
    assert not world.reward
    for action in run.plan:
        await world.step(action)
    assert world.reward == 1
    assert world.done
    assert len(world.traces) == len(run.plan)


async def test_where_there_is_no_java_the_environment_is_missing_by_name(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(EnvironmentMissing, match=r"scienceworld|Java"):
        async with ScienceWorld().environment():
            pass


def test_an_expert_s_walks_are_shortened():
    walk = ["open door to hallway", "go to hallway", "open door to kitchen", "go to kitchen", "look around"]
    assert shortened([*walk, "focus on lamp", "wait1"]) == ["teleport to kitchen", "focus on lamp"]
