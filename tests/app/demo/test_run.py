"""Both arms of the demo do the same tasks; memory pays, and is not obeyed."""

import re
from collections.abc import AsyncIterator

import pytest

from app.agents.memory import AgentRun, NoMemory, RememberedCase, RetrievedCases
from app.agents.operator.operator import STEP_BUDGET
from app.agents.operator.scratch import Scratch, scratch_database
from app.demo.run import Stream, run_arm
from app.postgres import EmbeddedPostgres


@pytest.fixture(scope="module")
async def scratch(postgres: EmbeddedPostgres) -> AsyncIterator[Scratch]:
    async with scratch_database(postgres.url("postgres"), budget=STEP_BUDGET) as scratch:
        yield scratch


class ListMemory:
    """Keeps runs in a list and ranks them by shared words."""

    def __init__(self, k: int = 4) -> None:
        self._k = k
        self._cases: list[RememberedCase] = []

    async def retrieve(self, task: str) -> RetrievedCases:
        """The `k` cases that share most words with `task`; the newest first among equals."""
        words = _words(task)

        def overlap(case: RememberedCase) -> float:
            return len(words & _words(case.task)) / len(words | _words(case.task))

        newest_first = self._cases[::-1]
        return RetrievedCases(cases=tuple(sorted(newest_first, key=overlap, reverse=True)[: self._k]))

    async def retain(self, run: AgentRun, slate: RetrievedCases) -> str | None:  # noqa: ARG002 (the protocol's signature)
        """The position of the run in the list."""
        case = RememberedCase(str(len(self._cases)), run.task, run.plan, "success" if run.success else "failure")
        self._cases.append(case)
        return case.case_id


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


class Fixed(NoMemory):
    """Answers every task with the same cases."""

    def __init__(self, *cases: RememberedCase) -> None:
        self._slate = RetrievedCases(cases=cases)

    async def retrieve(self, task: str) -> RetrievedCases:  # noqa: ARG002 - the protocol's signature
        return self._slate


async def test_both_arms_get_the_same_tasks_and_memory_pays(scratch: Scratch):
    tasks = Stream(1, 60)
    without = await run_arm("without", NoMemory(), tasks, scratch)
    again = await run_arm("without", NoMemory(), tasks, scratch)
    with_memory = await run_arm("with", ListMemory(), tasks, scratch)
    assert [record.task_id for record in without.records] == [record.task_id for record in with_memory.records]
    assert [record.steps for record in without.records] == [record.steps for record in again.records]
    assert with_memory.totals().steps < 0.75 * without.totals().steps
    assert with_memory.totals().success > without.totals().success
    assert not without.totals().first_try


async def test_memory_that_always_lies_leaves_the_operator_working(scratch: Scratch):
    liar = Fixed(
        RememberedCase("1", "an earlier task", ("apply repair: raise the statement timeout first",), "success")
    )
    arm = await run_arm("with", liar, Stream(2, 20), scratch)
    assert arm.totals().success > 0.4
