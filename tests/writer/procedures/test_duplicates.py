"""Drafts that say the same become one procedure, and others do not."""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from tests.writer.conftest import Bank
from tests.writer.procedure_bank import PLAN, TASK, finish, noted, stored, the_one
from writer.procedures.curation import retire
from writer.procedures.versions import MOST_SOURCES


async def test_near_duplicates_are_one_procedure_that_keeps_all_its_sources(bank: Bank, user: str):
    first = await finish(bank, user, plan=PLAN)
    second = await finish(bank, user, "please Restart the web server", plan=PLAN)
    third = await finish(
        bank, user, "restart the web server", plan=PLAN, outcome="partial", reward=0.9, reward_source="user"
    )
    row = await the_one(bank, user)
    assert (row.case_id, row.source_case_ids, row.occurrences) == (first, [first, second, third], 3)
    assert len(await noted(bank, user, "merge_procedure")) == 2


async def test_a_procedure_of_many_runs_keeps_the_newest_of_its_sources(
    bank: Bank, user: str, owner: asyncpg.Connection
):
    await finish(bank, user, plan=PLAN)
    full = [uuid4() for _ in range(MOST_SOURCES)]
    await owner.execute("UPDATE procedures SET source_case_ids = $2 WHERE user_sub = $1", user, full)
    newest = await finish(bank, user, "please Restart the web server", plan=PLAN)
    assert (await the_one(bank, user)).source_case_ids == [*full[1:], newest]


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


def made(*calls: tuple[str, dict[str, Any], str]) -> dict[str, Any]:
    return {"tool_traces": [{"tool": tool, "input": given, "output": output} for tool, given, output in calls]}


def corrected(tool: str, wrong: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    return made((tool, wrong, "Error: invalid value"), (tool, right, "done"))


def altered(how: str) -> dict[str, Any]:
    statements = "SELECT * FROM users", f"ALTER TABLE users {how}", "INSERT INTO log (what) VALUES ('altered')"
    return made(*(("sql", {"statement": each}, "done") for each in statements))


def lost(tool: str, error: str) -> dict[str, Any]:
    given = {"order_id": "o1", "user_id": "u1", "payment_method": "pm1", "note": "paid by the new card"}
    return {"outcome": "failure", **made((tool, given, error))}


def ordered(tool: str) -> dict[str, Any]:
    order, user = {"order_id": "o1"}, {"user_id": "u1"}
    mail, paid = user | {"text": "it is done"}, order | {"payment_method": "pm1"}
    looked = ("find_user", {"email": "a@b.de"}, "done"), ("get_user", user, "done"), ("get_order", order, "done")
    return made(*looked, (tool, paid, "done"), ("send_mail", mail, "done"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (ordered("refund_order"), ordered("cancel_order")),
        (
            corrected("set_status", {"parcel": "p1", "status": "sent"}, {"parcel": "p1", "status": "delivered"}),
            corrected("set_status", {"parcel": "p1", "status": "sent"}, {"parcel": "p1", "status": "pending"}),
        ),
        (
            corrected("bash", {"command": "git commit -m x"}, {"command": "git commit -m x --no-verify"}),
            corrected("bash", {"command": "git commit -m x"}, {"command": "git commit -m x --signoff"}),
        ),
        (
            {"plan": [*PLAN, "tell the users that it is done", "do not wait for the night"]},
            {"plan": [*PLAN, "tell the users that it is done", "do wait for the night"]},
        ),
        (lost("pay_order", "Error: order not found"), lost("pay_order", "Error: permission denied")),
        (lost("pay_order", "Error: order not found"), lost("close_order", "Error: order not found")),
        (altered("ADD COLUMN age int"), altered("DROP COLUMN age")),
        ({"plan": [*PLAN, "run it with --force"]}, {"plan": [*PLAN, "run it with --dry-run"]}),
    ],
    ids=[
        *("another tool", "another value", "another flag of a command", "a negation"),
        *("another failure", "another tool that fails", "another verb of SQL", "another flag"),
    ],
)
async def test_another_way_in_nearly_the_same_words_stays_apart(one: Any, other: Any, bank: Bank, user: str):
    await finish(bank, user, **one)
    learned = len(await stored(bank, user))
    await finish(bank, user, **other)
    rows = await stored(bank, user)
    assert len(rows) > learned


VERBS = ("start", "halt", "mask", "kill", "load", "move", "copy", "link", "scan", "sort")
TEN = [[f"{verb} the unit", f"{verb} the log"] for verb in VERBS]


@pytest.mark.parametrize("pgvector", [True, False])
async def test_each_of_ten_ways_of_one_task_is_learned_once(pgvector: bool, bank: Bank, user: str):  # noqa: FBT001
    for plan in (*TEN, *TEN):
        await finish(bank, user, worker={"pgvector": pgvector}, plan=plan)
    assert [row.occurrences for row in await stored(bank, user)] == [2] * 10


async def test_a_retired_procedure_stays_retired_among_many_active_ones(bank: Bank, user: str):
    for plan in TEN:
        await finish(bank, user, plan=plan)
    first = (await stored(bank, user))[0]
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await retire(connection, bank.author(user), first.id)
    await finish(bank, user, plan=TEN[0])
    rows = await stored(bank, user)
    assert (len(rows), rows[0].status, rows[0].occurrences) == (10, "retired", 2)


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
