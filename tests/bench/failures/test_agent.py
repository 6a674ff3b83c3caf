"""The agent does what the texts of a memory tell, in their order, and else tries its own ways."""

import json

import pytest

from app.demo.memory import NoMemory, RememberedCase, RetrievedCases, Trace, slate_of
from bench.failures.agent import Agent, Finished
from bench.failures.kinds import Attempts, Task, draw_tasks
from bench.failures.sql import SqlWorld

WORLD = SqlWorld()
TASKS = draw_tasks(WORLD, 1, 200)
COUNT = next(task for task in TASKS if task.kind == "live_rows")
CLOSED = next(task for task in TASKS if task.kind == "closed_books")
MARK = 'Memory of earlier runs (data, not instructions): sql failed like this before ("an error")'


class Adviser:
    """A memory that answers each failure with one text, and notes the failed calls."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.asked: list[Trace] = []

    async def at_failure(self, task: str, failed: Trace, slate: RetrievedCases) -> str:
        assert task
        assert slate.retrieval_id is None
        self.asked.append(failed)
        return self.text


async def run(task: Task, *cases: RememberedCase, memory: Adviser | None = None) -> Finished:
    return await Agent(task, Attempts(WORLD), slate_of(cases), memory, order_seed="any").run()


def success(way: str) -> RememberedCase:
    return RememberedCase("1", "an earlier task", (f"do it this way: {way}",), "success")


async def test_without_memory_it_tries_its_ways_until_one_works():
    done = await run(COUNT)
    assert done.run.success
    assert done.run.plan == (f"do it this way: {COUNT.works}",)
    assert len(done.tried) == len(done.run.traces) > 1
    assert [trace.status for trace in done.run.traces] == ["error"] * (len(done.tried) - 1) + ["ok"]
    assert (done.failed, done.advised, done.helped) == (0, 0, 0)


async def test_a_remembered_way_is_tried_first_and_another_kinds_way_is_not():
    wrong = next(title for title in COUNT.acts if title != COUNT.works)
    done = await run(COUNT, success("replace by code"), success(wrong), success(COUNT.works))
    assert done.tried == [wrong, COUNT.works]


async def test_ways_that_failed_runs_name_come_last():
    useless = tuple(f"tried without success: {title}" for title in COUNT.acts if title != COUNT.works)
    done = await run(COUNT, RememberedCase("1", "an earlier task", useless, "failure"))
    assert done.tried == [COUNT.works]


@pytest.mark.parametrize("with_plan", [True, False])
async def test_the_fix_that_advice_tells_is_tried_next_with_its_runs_plan_or_without(*, with_plan: bool):
    wrong = next(title for title in COUNT.acts if title not in {COUNT.works, "count every row"})
    old, new = (COUNT.acts[title].split(" AND ")[1] for title in (wrong, COUNT.works))
    plan = f"; that run's plan: {json.dumps([f'do it this way: {COUNT.works}'])}" if with_plan else ""
    memory = Adviser(f"{MARK}. What put it right: input: `{new}` in place of `{old}` (1 of 1 runs{plan}).")
    done = await run(COUNT, success(wrong), memory=memory)
    assert done.tried == [wrong, COUNT.works]
    assert (done.failed, done.advised, done.helped) == (1, 1, 1)
    assert [(each.tool, each.input) for each in memory.asked] == [("sql", {"query": COUNT.acts[wrong]})]


async def test_it_stops_where_no_run_got_past_the_failure():
    alone = await run(CLOSED)
    assert len(alone.tried) == len(CLOSED.acts)
    assert alone.run.plan[0] == "met whatever was tried: IntegrityError: the books are closed"
    told = Adviser(f"{MARK}, and none of 3 runs got past it.")
    assert len((await run(CLOSED, memory=told)).tried) == 1
    remembered = RememberedCase("1", CLOSED.text, alone.run.plan, "failure")
    assert len((await run(CLOSED, remembered)).tried) == 1
    assert len((await run(COUNT, remembered)).tried) > 1


async def test_a_memory_that_tells_nothing_changes_nothing():
    slate = await NoMemory().retrieve(COUNT.text)
    silent = await Agent(COUNT, Attempts(WORLD), slate, Adviser(""), order_seed="any").run()
    assert silent.tried == (await run(COUNT)).tried
