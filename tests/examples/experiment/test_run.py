"""The experiment: predicted first, compared in pairs, honest where memory does not help and where things break."""

from dataclasses import replace
from typing import Any

import httpx
import pytest
from rich.console import Console

from app.demo.world import MemoryUnusable, Size, Tasks
from examples.experiment.prediction import predictions
from examples.experiment.report import Report
from examples.experiment.run import run_experiment
from tests.examples.experiment.riddles import Riddle, Riddles, Room, run
from tests.service import Service


async def test_what_is_predicted_is_said_before_the_environment_is_touched(service: Service):
    console, said = Console(record=True, width=200), []

    class Listening(Room):
        async def reset(self, task: Riddle) -> None:
            said.append(console.export_text(clear=False))
            await super().reset(task)

    class Adapter(Riddles):
        room = Listening

    await run(service, Adapter(), console, practice=1, test=1, ks=(0,))
    assert "predicted before the run" in said[0]
    assert all(each.text in said[0] for each in predictions(3))
    assert "falsified above -25%" in said[0]


def test_every_arm_gets_the_same_tasks_and_none_that_was_practised_on(report: Report):
    arms = {name: [episode.task_id for episode in episodes] for name, episodes in report.arms()}
    assert list(report.sweep) == [0, 1, 2, 4, 8]
    tested = [arms[name] for name in arms if name.startswith("test")]
    assert len(tested) == 5 + 3 + 1
    assert all(arm == tested[0] for arm in tested)
    assert arms["practice without"] == arms["practice with"]
    assert not set(tested[0]) & set(arms["practice with"])


def test_memory_of_the_task_s_kind_makes_it_succeed_in_fewer_steps(report: Report):
    assert report.measured["steps"] < -0.5
    assert report.measured["success"] > 10
    assert report.most_reused >= 2
    verdicts = {each["key"]: each["verdict"] for each in report.as_dict()["predictions"]}
    assert verdicts["steps"] == verdicts["success"] == verdicts["reuse"] == "as predicted"
    assert all(episode.injected == episode.tokens_added == 0 for episode in report.sweep[0])
    assert all(0 < episode.injected <= 4 and episode.tokens_added for episode in report.sweep[4])
    assert max(episode.injected for episode in report.sweep[1]) == 1


def test_a_bank_of_a_wrong_family_stays_silent_and_changes_nothing(report: Report):
    assert len(report.wrong_family) == 2 * 9
    assert all(after.injected == 0 for _, after in report.wrong_family)
    assert report.wrong_success.value == 0
    assert [before.steps for before, _ in report.wrong_family] == [after.steps for _, after in report.wrong_family]


async def test_wrong_memory_that_is_injected_costs_steps_and_is_not_obeyed(service: Service):
    class Credulous(Riddles):
        budget, min_similarity, families = 15, -1.0, ("vault", "dog")

        async def tasks(self, environment: Any, family: str, size: Size) -> Tasks:
            """In much the same words for either family, or the wrong one would not be told."""
            found = await super().tasks(environment, family, size)
            practice, test = (
                [replace(task, text=f"Open the iron door of the bank for {task.id}") for task in some]
                for some in (found.practice, found.test)
            )
            return Tasks(practice, test)

    report = await run(service, Credulous(), ks=(0,))
    assert any(after.injected for _, after in report.wrong_family)
    assert all(after.success for _, after in report.wrong_family)
    changes = [after.steps - before.steps for before, after in report.wrong_family]
    assert max(changes) == 1


async def test_a_service_that_refuses_is_a_named_error():
    transport = httpx.MockTransport(lambda _: httpx.Response(503))
    async with httpx.AsyncClient(transport=transport, base_url="http://casebank") as client:
        with pytest.raises(MemoryUnusable, match="503"):
            await run_experiment(Riddles(), client, Size(practice=1, test=1))
