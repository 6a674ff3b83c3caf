"""All arms of the demo do the same tasks; memory pays, and is not obeyed."""

from collections.abc import AsyncIterator

import pytest

from app.demo.arms import FIRST_TRY, STEPS, SUCCESS, mean
from app.demo.memory import AgentRun, KeywordMemory, NoMemory, RememberedCase, RetrievedCases, slate_of
from app.demo.operator.house import House
from app.demo.operator.operator import STEP_BUDGET
from app.demo.operator.scratch import Scratch, scratch_database
from app.demo.run import run_arm
from app.postgres import EmbeddedPostgres


@pytest.fixture(scope="module")
async def scratch(postgres: EmbeddedPostgres) -> AsyncIterator[Scratch]:
    async with scratch_database(postgres.url("postgres"), budget=STEP_BUDGET) as scratch:
        yield scratch


class Fixed(NoMemory):
    """Answers every task with the same cases, and notes what it is to keep."""

    def __init__(self, *cases: RememberedCase) -> None:
        self._slate = slate_of(cases)
        self.kept: list[AgentRun] = []

    async def retrieve(self, task: str) -> RetrievedCases:  # noqa: ARG002 - the protocol's signature
        return self._slate

    async def retain(self, run: AgentRun, slate: RetrievedCases) -> str | None:  # noqa: ARG002 - the same
        self.kept.append(run)
        return None


async def test_every_arm_gets_the_same_tasks_and_memory_pays(scratch: Scratch):
    house = House(1, 60)
    without = await run_arm("without", NoMemory(), house, scratch)
    again = await run_arm("without", NoMemory(), house, scratch)
    with_memory = await run_arm("with", KeywordMemory(), house, scratch)
    assert [record.task_id for record in without.records] == [record.task_id for record in with_memory.records]
    assert [record.steps for record in without.records] == [record.steps for record in again.records]
    assert mean(with_memory.records, STEPS) < 0.75 * mean(without.records, STEPS)
    assert mean(with_memory.records, SUCCESS) > mean(without.records, SUCCESS)
    assert mean(without.records, FIRST_TRY) == 0


async def test_memory_that_always_lies_leaves_the_operator_working(scratch: Scratch):
    liar = Fixed(
        RememberedCase("1", "an earlier task", ("apply repair: raise the statement timeout first",), "success")
    )
    arm = await run_arm("with", liar, House(2, 20), scratch)
    assert mean(arm.records, SUCCESS) > 0.4


async def test_every_memory_gets_the_forgers_runs_before_their_place_in_the_stream(scratch: Scratch):
    house, memory = House(1, 40), Fixed()
    await run_arm("with", memory, house, scratch)
    ((place, planted),) = house.planted().items()
    assert [run.checked for run in memory.kept] == [True] * place + [False] * len(planted) + [True] * (40 - place)
