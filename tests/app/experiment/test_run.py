"""The experiment: predicted first, compared in pairs, honest where memory does not help and where things break."""

import json
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from math import inf, isnan
from pathlib import Path
from typing import Any

import httpx
import pytest
from rich.console import Console
from typer.testing import CliRunner

from app.agents.memory import AgentRun, Trace
from app.agents.operator.environment import DatabaseOperator
from app.agents.world import Briefing, Environment, EnvironmentMissing, MemoryUnusable, Size, StepsSpent, Tasks
from app.bench.experiment import measure, rows_of
from app.cli import cli
from app.experiment.episode import Episode
from app.experiment.files import write_files
from app.experiment.paired import break_even, paired, running_balance, steps_change, success_points
from app.experiment.prediction import predictions
from app.experiment.report import Report, print_report
from app.experiment.run import run_experiment
from app.postgres import EmbeddedPostgres
from tests.app.conftest import Service

TEXTS = {
    "vault": "Open the iron vault number {} in the cellar of the bank",
    "dog": "Calm the barking terrier of neighbour {} in the garden",
    "soup": "Season the lentil soup for table {} before dinner",
}
ANSWERS = {"vault": "turn the wheel", "dog": "throw a stick", "soup": "add cumin"}
ACTIONS = (*ANSWERS.values(), *(f"wave {number} times" for number in range(9)))


@dataclass(frozen=True)
class Riddle:
    id: str
    family: str
    text: str


class Room:
    """Asks for one action of twelve."""

    def __init__(self) -> None:
        self.done, self.reward, self.traces = False, 0.0, []

    async def reset(self, task: Riddle) -> None:
        self.task, self.done, self.reward, self.traces = task, False, 0.0, []

    async def step(self, action: str) -> None:
        self.done = action == ANSWERS[self.task.family]
        self.reward = float(self.done)
        self.traces.append(Trace("act", action, "click" if self.done else "nothing happens", "ok", 0.1))


class Riddles:
    """A scripted guesser: first what the slate's successes did, then its own list."""

    name, families, budget, min_similarity = "riddles", tuple(TEXTS), 6, 0.4
    explanation = "A guesser, not an LLM."
    size = Size(practice=4, test=3)
    room = Room

    @asynccontextmanager
    async def environment(self) -> AsyncIterator[Room]:
        yield self.room()

    async def tasks(self, environment: Any, family: str, size: Size) -> Tasks:  # noqa: ARG002 - the protocol's
        numbers = range(size.practice + size.test)
        tasks = [Riddle(f"{family}-{number}", family, TEXTS[family].format(number)) for number in numbers]
        return Tasks(tasks[: size.practice], tasks[size.practice :])

    async def demonstrations(self, environment: Any, tasks: Sequence[Riddle]) -> Sequence[AgentRun]:  # noqa: ARG002
        return [AgentRun(task.text, (ANSWERS[task.family],), (), success=True, first_try=True) for task in tasks]

    async def play(self, world: Environment, briefing: Briefing) -> AgentRun:
        tips = [case for case in briefing.slate.cases if case.outcome == "success"]
        own = random.Random(briefing.seed).sample(ACTIONS, len(ACTIONS))
        action = ""
        try:
            for action in dict.fromkeys([case.plan[0] for case in tips] + own):
                await world.step(action)
                if world.done:
                    break
        except StepsSpent:
            pass
        used = tuple(case.case_id for case in tips)
        # it claims success whatever happens: the harness must not take its word
        return AgentRun(briefing.task.text, (action,), tuple(world.traces), True, False, used)


async def run(service: Service, adapter: Any, console: Console | None = None, **size: Any) -> Report:
    user = await service.user()
    return await run_experiment(adapter, user.http, replace(adapter.size, **size), console)


@pytest.fixture(scope="module")
async def report(service: Service) -> Report:
    return await run(service, Riddles())


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

    report = await run(service, Credulous(), ks=(0,))
    assert any(after.injected for _, after in report.wrong_family)
    assert all(after.success for _, after in report.wrong_family)
    changes = [after.steps - before.steps for before, after in report.wrong_family]
    assert max(changes) == 1


def test_the_transfer_matrix_has_a_cell_for_each_bank_and_family(report: Report):
    transfer = report.as_dict()["transfer"]
    assert list(transfer) == list(TEXTS)
    assert all(list(row) == list(TEXTS) for row in transfer.values())
    assert transfer["dog"]["dog"]["injected"] > 0 == transfer["dog"]["soup"]["injected"]
    assert transfer["soup"]["soup"]["steps_change"] < 0


def test_the_report_is_printed_and_written_as_numbers_and_a_picture(report: Report, tmp_path: Path):
    console = Console(record=True, width=200)
    print_report(report, console)
    said = console.export_text()
    assert "as predicted" in said
    assert "test, expert's bank" in said
    assert "A guesser, not an LLM." in said
    files = write_files(report, tmp_path)
    numbers = json.loads(files["json"].read_text())
    assert numbers["differences"]["steps_change"]["low"] <= numbers["predictions"][0]["measured"]
    without, with_memory = (numbers["arms"][f"test, K = {k}"] for k in (0, 4))
    assert with_memory["tasks"] == 9
    net = without["tokens_spent"] - with_memory["tokens_spent"] - with_memory["tokens_added"]
    assert with_memory["tokens_net"] == pytest.approx(net)
    assert without["tokens_net"] is None
    assert files["png"].read_bytes().startswith(b"\x89PNG")


async def test_an_environment_that_raises_is_reported_and_its_pairs_count_nowhere(service: Service):
    class Fragile(Room):
        async def step(self, action: str) -> None:
            if self.task.id == "dog-5":
                raise RuntimeError("the lead broke")
            await super().step(action)

    class Adapter(Riddles):
        room = Fragile

    report = await run(service, Adapter(), ks=(0, 4))
    assert {episode.task_id for episode in report.crashes} == {"dog-5"}
    assert len(report.tested) == 8
    assert len(report.sweep[0]) == 9
    told = report.as_dict()
    assert "the lead broke" in told["environment_failures"][0]
    assert told["arms"]["test, K = 0"]["ended"]["environment failed"] == 1


async def test_an_environment_that_always_raises_proves_and_disproves_nothing(service: Service):
    class Broken(Room):
        async def reset(self, task: Riddle) -> None:
            raise OSError(f"no such room: {task.id}")

    class Adapter(Riddles):
        room = Broken

    report = await run(service, Adapter(), practice=1, test=1, ks=(0,))
    assert {each["verdict"] for each in report.as_dict()["predictions"] if each["key"] != "reuse"} == {"not measured"}
    print_report(report, Console(quiet=True))


async def test_an_environment_that_never_ends_is_ended_by_the_budget(service: Service):
    class Endless(Room):
        async def step(self, action: str) -> None:
            """Keeps no trace, either."""

    class Adapter(Riddles):
        room = Endless

    report = await run(service, Adapter(), practice=1, test=1, ks=(0,))
    assert {episode.ended for episode in report.sweep[0]} == {"out of steps"}


async def test_success_is_the_environment_s_word_not_the_agent_s(service: Service):
    class Stingy(Room):
        async def step(self, action: str) -> None:
            await super().step(action)
            self.reward = 0.9 * self.done

    class Adapter(Riddles):
        room = Stingy

    report = await run(service, Adapter(), practice=1, test=1, ks=(0,))
    assert not any(episode.success for episode in report.sweep[0])
    assert not any(after.reused for _, after in report.tested)  # nor was it retained as one


async def test_a_service_that_refuses_is_a_named_error():
    transport = httpx.MockTransport(lambda _: httpx.Response(503))
    async with httpx.AsyncClient(transport=transport, base_url="http://casebank") as client:
        with pytest.raises(MemoryUnusable, match="503"):
            await run_experiment(Riddles(), client, Size(practice=1, test=1))


def episode(task_id: str, steps: int, *, success: bool = True, spent: int = 0, added: int = 0) -> Episode:
    ended = "success" if success else "failure"
    return Episode(task_id, "f", ended, float(success), steps, 0, (), added, spent, None, 1.0)


def test_break_even_is_where_the_balance_stays_above_zero_for_good():
    assert break_even([-5, 3, -1, 0, 4]) == 4
    assert break_even([2, 5]) == 1
    assert break_even([5, -1]) == inf
    assert isnan(break_even([]))
    pairs = [
        (episode("a", 9, spent=90), episode("a", 9, spent=90, added=20)),
        (episode("b", 9, spent=90), episode("b", 3, spent=30, added=10)),
    ]
    assert running_balance(pairs) == [-20, 30]


def test_a_failure_counts_the_whole_budget():
    pairs = [(episode("a", 2, success=False), episode("a", 5)), (episode("b", 10), episode("b", 5))]
    assert steps_change(pairs, 20, seed=1).value == pytest.approx(10 / 30 - 1)
    assert success_points(pairs, seed=1).value == 50


def test_the_interval_is_by_task_and_the_same_for_the_same_seed():
    pairs = [(episode(str(n), 10), episode(str(n), n)) for n in range(1, 10)]
    once = steps_change(pairs, 20, seed=1)
    assert once == steps_change(pairs, 20, seed=1)
    assert once.low < once.value < once.high
    # a task that was tried with three wrong banks is still one task
    assert steps_change(pairs * 3, 20, seed=1) == once


def test_a_pair_with_a_failed_environment_is_left_out():
    broken = replace(episode("b", 1), ended="environment failed")
    assert paired([episode("a", 3), broken], [episode("a", 2), episode("b", 2)]) == [(episode("a", 3), episode("a", 2))]


def test_a_verdict_is_graded_by_the_limit_that_was_named_before():
    steps = predictions(40)[0]
    assert [steps.verdict(value) for value in (-0.6, -0.3, -0.1, float("nan"))] == [
        "as predicted",
        "weaker than predicted",
        "FALSIFIED",
        "not measured",
    ]
    assert predictions(40)[-1].verdict(inf) == "FALSIFIED"


def test_the_benchmark_sets_the_numbers_against_their_aims(report: Report):
    rows = {row.name.removeprefix("experiment riddles: "): row for row in rows_of(report)}
    assert rows["change of steps"].value == report.measured["steps"]
    assert rows["change of steps"].reached
    assert rows["success won"].value == pytest.approx(report.measured["success"] / 100)
    assert rows["success won, wrong family"].reached
    assert "at K = 8" in rows["break-even"].detail
    assert rows["success won, expert's bank"].reached is None


async def test_the_benchmark_says_what_it_had_to_skip_and_what_broke(service: Service):
    class Absent(Riddles):
        @asynccontextmanager
        async def environment(self) -> AsyncIterator[Room]:
            raise EnvironmentMissing("no room")
            yield self.room()

    class Broken(Room):
        async def reset(self, task: Riddle) -> None:
            raise OSError(f"no such room: {task.id}")

    class Breaking(Riddles):
        room, size = Broken, Size(practice=1, test=1, ks=(0,))

    client = (await service.user()).http
    (absent,), (broken,) = await measure(Absent(), client), await measure(Breaking(), client)
    assert (absent.name, absent.detail, absent.reached) == ("experiment riddles: SKIPPED", "no room", None)
    assert broken.reached is False
    assert "no such room" in broken.detail


async def test_the_database_operator_profits_from_its_own_runs(service: Service, postgres: EmbeddedPostgres):
    class Few(DatabaseOperator):
        families = ("missing_type", "reserved_column")

    report = await run(service, Few(postgres.url("postgres")), practice=4, test=3, ks=(0, 4))
    assert report.measured["steps"] < 0
    assert report.most_reused >= 2
    assert not report.experts
    assert not report.memory_errors
    assert not report.crashes


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--env", "chess"], "no environment 'chess'"),
        (["--k", "0,-1"], "from 0 to 50"),
        (["--k", "51"], "from 0 to 50"),
        (["--k", "few"], "from 0 to 50"),
        (["--practice", "0"], "--practice"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_starts(options: list[str], said: str):
    result = CliRunner().invoke(cli, ["experiment", *options], env={"COLUMNS": "200"})
    assert result.exit_code == 2
    assert said in result.output
