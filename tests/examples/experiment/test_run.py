"""The experiment and its report: predicted first, compared in pairs, honest where memory does not help."""

import json
from dataclasses import replace
from math import inf, isnan
from pathlib import Path
from typing import Any

import httpx
import pytest
from rich.console import Console

from bench.experiment import rows_of
from examples.experiment.files import write_files
from examples.experiment.prediction import predictions
from examples.experiment.report import Report
from examples.experiment.run import run_experiment
from examples.experiment.tables import print_report
from examples.world import MemoryUnusable, Size, Tasks
from tests.examples.experiment.riddles import TEXTS, Riddle, Riddles, Room, run
from tests.service import Service


@pytest.fixture(scope="module")
async def report(service: Service) -> Report:
    """One finished experiment, which the tests look at from all sides."""
    return await run(service, Riddles())


async def test_what_is_predicted_is_said_before_the_environment_is_touched(service: Service):
    console, texts = Console(record=True, width=200), []

    class Listening(Room):
        async def reset(self, task: Riddle) -> None:
            texts.append(console.export_text(clear=False))
            await super().reset(task)

    class Adapter(Riddles):
        room = Listening

    await run(service, Adapter(), console, practice=1, test=1, ks=(0,))
    assert "predicted before the run" in texts[0]
    assert all(each.text in texts[0] for each in predictions(1))
    assert "falsified above -25%" in texts[0]


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


def test_gains_are_told_from_task_to_task_of_a_kind_with_tokens_and_rating(report: Report):
    learning = report.as_dict()
    assert len(learning["steps_change_by_place"]) == report.size.practice
    assert learning["steps_change_by_place"][0] == 0  # the bank is empty
    assert learning["steps_change_by_place"][-1] < 0
    assert report.measured["rating"] > 1
    assert report.measured["break_even"] == inf  # a guess costs fewer tokens than a case
    assert isnan(report.measured["compounding"])  # there is no 5th task


async def test_gains_of_the_first_and_of_later_tasks_are_compared(service: Service):
    class Two(Riddles):
        families = ("vault", "dog")

    report = await run(service, Two(), practice=6, test=1, ks=(0,))
    assert report.measured["compounding"] == report.gain(range(5, 7)) - report.gain(range(2, 5))


def test_a_bank_of_a_wrong_family_stays_silent_and_changes_nothing(report: Report):
    assert len(report.wrong_family) == 2 * 9
    assert all(after.injected == 0 for _, after in report.wrong_family)
    assert report.wrong_success.value == 0
    assert [before.steps for before, _ in report.wrong_family] == [after.steps for _, after in report.wrong_family]


def test_the_transfer_matrix_has_a_cell_for_each_bank_and_family(report: Report):
    transfer = report.as_dict()["transfer"]
    assert list(transfer) == list(TEXTS)
    assert all(list(row) == list(TEXTS) for row in transfer.values())
    assert transfer["dog"]["dog"]["injected"] > 0 == transfer["dog"]["soup"]["injected"]
    assert transfer["soup"]["soup"]["steps_change"] < 0


def test_the_report_is_printed_and_written_as_numbers_and_a_picture(report: Report, tmp_path: Path):
    console = Console(record=True, width=200)
    print_report(report, console)
    text = console.export_text()
    assert "as predicted" in text
    assert "test, expert's bank" in text
    assert "A guesser, not an LLM." in text
    files = write_files(report, tmp_path)
    numbers = json.loads(files["json"].read_text())
    assert numbers["differences"]["steps_change"]["low"] <= numbers["predictions"][0]["measured"]
    without, with_memory = (numbers["arms"][f"test, K = {k}"] for k in (0, 4))
    assert with_memory["tasks"] == 9
    net = without["tokens_spent"] - with_memory["tokens_spent"] - with_memory["tokens_added"]
    assert with_memory["tokens_net"] == pytest.approx(net)
    assert without["tokens_net"] is None
    assert files["png"].read_bytes().startswith(b"\x89PNG")


def test_a_world_without_other_rules_measures_nothing(report: Report):
    verdicts = {each["key"]: each["verdict"] for each in report.as_dict()["predictions"]}
    assert verdicts["reflection"] == verdicts["reflection_steps"] == "not measured"


def test_the_benchmark_sets_the_numbers_against_their_aims(report: Report):
    rows = {row.name.removeprefix("experiment riddles: "): row for row in rows_of(report)}
    assert rows["change of steps"].value == report.measured["steps"]
    assert rows["change of steps"].reached
    assert rows["success won"].value == pytest.approx(report.measured["success"] / 100)
    assert rows["success won, wrong family"].reached
    assert "at K = 8" in rows["break-even"].detail
    assert rows["success won, expert's bank"].reached is None


async def test_wrong_memory_that_is_injected_costs_steps_and_is_not_obeyed(service: Service):
    class Credulous(Riddles):
        budget, min_similarity, families = 15, -1.0, ("vault", "dog")

        async def tasks(self, environment: Any, family: str, size: Size) -> Tasks:
            """In much the same words for either family, or the wrong one would not be told."""
            drawn = await super().tasks(environment, family, size)
            practice, test = (
                [replace(task, text=f"Open the iron door of the bank for {task.id}") for task in some]
                for some in (drawn.practice, drawn.test)
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
