"""Whatever makes work for the worker wakes it: by its own looks it would find nothing in the time of a test."""

import asyncio
from typing import Any

import pytest

from tests.service import AGENT, SETTLES_WITHIN_S, User

ENTRY = {"agent": AGENT, "category": "garden", "type": "rule", "title": "water", "text": "Water the roses at six."}
MAKES_WORK: dict[str, tuple[str, str, dict[str, Any]]] = {
    "a run": ("cases", "/v1/retain", {"agent": AGENT, "task": "water the roses", "outcome": "success"}),
    "turns": (
        "sessions",
        "/v1/sessions/chat/turns",
        {"agent": AGENT, "turns": [{"role": "user", "content": "I live in Bern."}]},
    ),
    "a fact": ("memories", "/v1/facts", {"agent": AGENT, "kind": "fact", "text": "The roses want water."}),
    "knowledge": ("memories", "/v1/knowledge", ENTRY),
    "a fact of a model": (
        "memories",
        f"/v1/memory-tools/remember?agent={AGENT}",
        {"kind": "fact", "text": "The roses want water."},
    ),
    "a run of a model": (
        "cases",
        f"/v1/memory-tools/remember?agent={AGENT}",
        {"kind": "run", "text": "water the roses", "outcome": "success"},
    ),
}


async def worked_off(user: User, table: str) -> None:
    """Waits until rows are there and none waits, without a call for the worker."""
    async with asyncio.timeout(SETTLES_WITHIN_S / 2):
        statement = f"SELECT status FROM {table} WHERE user_sub = :user_sub"  # noqa: S608 - ours
        while {row.status for row in await user.rows(statement)} != {"ready"}:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("what", MAKES_WORK)
async def test_what_makes_work_wakes_the_worker(alice: User, what: str):
    table, path, body = MAKES_WORK[what]
    answer = await alice.http.post(path, json=body)
    assert answer.is_success, answer.text
    await worked_off(alice, table)


async def test_knowledge_that_is_changed_wakes_the_worker(alice: User):
    entry = (await alice.http.post("/v1/knowledge", json=ENTRY)).json()["knowledge_id"]
    await worked_off(alice, "memories")
    changed = await alice.http.put(f"/v1/knowledge/{entry}", json=ENTRY | {"text": "Water the roses at seven."})
    assert changed.status_code == 200, changed.text
    await worked_off(alice, "memories")
