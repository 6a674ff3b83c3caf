"""Lessons that say "avoid": gone once a run has put the same failure right; plans: without what failed."""

from typing import Any

from tests.writer.conftest import Bank
from tests.writer.procedure_bank import ask, finish, noted, stored


def http(version: str, output: str) -> dict[str, Any]:
    return {"tool": "http", "input": {"url": f"https://x.org/{version}/orders"}, "output": output}


GONE = http("v1", "Error 410: version v1 was switched off")


async def lessons(bank: Bank, user: str) -> list[str]:
    return [row.status for row in await stored(bank, user) if row.kind == "failure_lesson"]


async def test_a_later_run_that_puts_the_same_failure_right_retires_the_lesson(bank: Bank, user: str):
    await finish(bank, user, "List the orders", outcome="failure", tool_traces=[GONE])
    assert await lessons(bank, user) == ["active"]
    await finish(bank, user, "Show the orders", tool_traces=[http("v1", "Error 403: forbidden"), http("v2", "[1, 2]")])
    assert await lessons(bank, user) == ["active"]  # another error
    await finish(bank, user, "Show all orders", tool_traces=[GONE, http("v2", "[1, 2]")])
    assert await lessons(bank, user) == ["retired"]
    assert len(await noted(bank, user, "retire_procedure")) == 1


async def test_a_failure_that_was_put_right_before_teaches_no_lesson_to_avoid_it(bank: Bank, user: str):
    await finish(bank, user, "Show all orders", tool_traces=[GONE, http("v2", "[1, 2]")])
    await finish(bank, user, "List the orders", outcome="failure", tool_traces=[GONE])
    assert await lessons(bank, user) == ["retired"]


async def test_a_plan_made_of_calls_holds_none_that_failed_by_its_output(bank: Bank, user: str):
    ended = [http("v1", "Error 410: version v1 was switched off"), http("v2", "[1, 2]")]
    await finish(bank, user, "Post the orders", tool_traces=ended)
    (choice,) = (await ask(bank, user, "Post the orders")).choices
    assert list(choice.row.plan) == ["http(url=https://x.org/v2/orders)"]


async def test_a_plan_that_the_backend_wrote_stays(bank: Bank, user: str):
    await finish(bank, user, "Post the orders", plan=["try v1", "use v2"], tool_traces=[GONE, http("v2", "[1, 2]")])
    (choice,) = (await ask(bank, user, "Post the orders")).choices
    assert list(choice.row.plan) == ["try v1", "use v2"]
