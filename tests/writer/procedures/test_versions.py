"""Revisions: a failed run that used a procedure writes its next version."""

from uuid import uuid4

from tests.writer.conftest import Bank
from tests.writer.procedure_bank import ask, calls, failing_run, finish, stored, the_one, versions


async def test_a_failed_run_that_used_a_procedure_makes_a_new_version_and_the_old_one_stays(bank: Bank, user: str):
    first = await finish(bank, user, tool_traces=calls("drain", "restart"))
    row = await the_one(bank, user)
    traces = calls("drain", "restart", failing="restart")
    second = await finish(
        bank, user, outcome="failure", tool_traces=traces, used_procedure_ids=[str(row.id)], tags=["other"]
    )
    old, new = (each for each in await stored(bank, user) if each.id == row.id)
    assert (old.version, old.status, old.record) == (1, "superseded", row.record)
    assert (new.version, new.status, new.kind, new.parent_version) == (2, "active", "revision", 1)
    assert (new.case_id, new.source_case_ids) == (second, [first, second])
    assert "restart called with host=<id>" in new.record["learned_procedure_steps"][1]
    assert (new.trigger, new.level, new.task_type) == (row.trigger, "hybrid", "restart")
    told = [(each.id, each.version) for each in (await ask(bank, user)).procedures if not each.warns]
    assert told == [(row.id, 2)]


async def test_nothing_is_revised_by_a_success_or_by_a_run_that_used_something_else(bank: Bank, user: str):
    await finish(bank, user, tool_traces=calls("drain", "restart"))
    row = await the_one(bank, user)
    await failing_run(bank, user, row.id, outcome="success")
    await failing_run(bank, user, uuid4())
    await finish(bank, user, "x", outcome="failure", tool_traces=calls("drain", failing="drain"))
    assert await versions(bank, user, row.id) == [(1, "active")]


async def test_a_procedure_of_another_user_is_not_revised(bank: Bank, user: str):
    await finish(bank, user, tool_traces=calls("drain", "restart"))
    row = await the_one(bank, user)
    await failing_run(bank, f"{user}-b", row.id)
    assert await versions(bank, user, row.id) == [(1, "active")]


async def test_a_version_that_was_shown_and_replaced_since_is_not_revised_again(bank: Bank, user: str):
    await finish(bank, user, tool_traces=calls("drain", "restart"))
    row = await the_one(bank, user)
    slate = await ask(bank, user)
    await failing_run(bank, user, row.id)
    left_out = {"outcome": "failure", "tool_traces": calls("restart"), "used_procedure_ids": [str(row.id)]}
    await finish(bank, user, "y", **left_out, retrieval_id=slate.retrieval_id)
    assert await versions(bank, user, row.id) == [(1, "superseded"), (2, "active")]
    await finish(bank, user, "z", **left_out)
    assert await versions(bank, user, row.id) == [(1, "superseded"), (2, "superseded"), (3, "active")]
