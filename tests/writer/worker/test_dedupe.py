"""Repeats: runs that did the same for the same task are one case that counts them."""

import asyncio
from dataclasses import replace

from tests.fakes.openai_server import OpenAIServer
from tests.writer.conftest import (
    PACE,
    Bank,
    MakeWorker,
    drain,
    keep,
    states,
)


async def test_twenty_equal_retains_without_a_key_become_one_ready_case_that_counts_them(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    ids = await asyncio.gather(*(keep(bank, user) for _ in range(20)))
    assert len(set(ids)) == 20
    await asyncio.gather(*(drain(worker_on(server, replace(PACE, batch=3))) for _ in range(4)))
    rows = await states(bank, user)
    (kept,) = [row for row in rows if row.status == "ready"]
    assert kept.occurrences == 20
    assert {(row.status, row.merged_into) for row in rows if row is not kept} == {("merged", kept.id)}
    assert len(rows) == 20
    assert (await bank.counts(user))["case_embeddings"] == 1


async def test_equal_runs_of_two_users_are_not_merged(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    await keep(bank, user)
    await keep(bank, f"{user}-b")
    await drain(worker_on(server))
    assert [row.status for name in (user, f"{user}-b") for row in await states(bank, name)] == ["ready", "ready"]


async def test_runs_that_differ_in_outcome_plan_kind_or_agent_are_not_merged(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    for difference in ({}, {"outcome": "failure"}, {"plan": ["turn the tap"]}, {"kind": "tool"}, {"agent": "other"}):
        await keep(bank, user, **difference)
    await drain(worker_on(server))
    assert {(row.status, row.occurrences) for row in await states(bank, user)} == {("ready", 1)}


async def test_the_same_words_in_another_case_and_spacing_are_the_same_run(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    await keep(bank, user, "water the garden", plan=["turn the tap"])
    await keep(bank, user, " Water  the\nGARDEN ", plan=["Turn the  tap"])
    await drain(worker_on(server))
    assert [(row.status, row.occurrences) for row in await states(bank, user)] == [("ready", 2), ("merged", 1)]
