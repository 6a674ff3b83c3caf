"""Drafts that say the same become one procedure, and others do not."""

import pytest

from tests.writer.conftest import Bank
from tests.writer.procedure_bank import PLAN, TASK, finish, noted, stored, the_one


async def test_near_duplicates_are_one_procedure_that_keeps_all_its_sources(bank: Bank, user: str):
    first = await finish(bank, user, plan=PLAN)
    second = await finish(bank, user, "please Restart the web server", plan=PLAN)
    third = await finish(
        bank, user, "restart the web server", plan=PLAN, outcome="partial", reward=0.9, reward_source="user"
    )
    row = await the_one(bank, user)
    assert (row.case_id, row.source_case_ids, row.occurrences) == (first, [first, second, third], 3)
    assert len(await noted(bank, user, "merge_procedure")) == 2


@pytest.mark.parametrize(
    ("task", "plan"),
    [
        ("Translate the letter", PLAN),
        (TASK, ["restart the unit"]),
        (TASK, ["ask the operator", "wait for an answer", "go home"]),
    ],
    ids=["another trigger", "fewer steps", "other steps"],
)
async def test_procedures_that_differ_stay_apart(task: str, plan: list[str], bank: Bank, user: str):
    await finish(bank, user, plan=PLAN)
    await finish(bank, user, task, plan=plan)
    assert [row.occurrences for row in await stored(bank, user)] == [1, 1]


@pytest.mark.parametrize("pgvector", [True, False])
async def test_one_way_of_tasks_that_are_like_each_other_is_one_procedure(pgvector: bool, bank: Bank, user: str):  # noqa: FBT001
    for task in ("Restart the web server", "Restart the mail server of the office", "Restart the print server now"):
        await finish(bank, user, task, worker={"pgvector": pgvector}, plan=PLAN)
    assert (await the_one(bank, user)).occurrences == 3
    await finish(bank, user, "Restart the database server", worker={"pgvector": pgvector}, plan=[*PLAN[:-1], "wait"])
    assert [row.occurrences for row in await stored(bank, user)] == [3, 1]


async def test_without_pgvector_the_same_ones_merge(bank: Bank, user: str):
    for task in (TASK, f"please {TASK}", TASK.lower(), "Translate the letter"):
        await finish(bank, user, task, worker={"pgvector": False}, plan=PLAN)
    assert [row.occurrences for row in await stored(bank, user)] == [3, 1]
