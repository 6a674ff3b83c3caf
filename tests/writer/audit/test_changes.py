"""The audit: what a change's entry says."""

from datetime import UTC, datetime

from sqlalchemy import select

from retrieval.tables.audit import audit
from tests.writer.conftest import AGENT, Bank
from writer.audit import Change, note


def test_the_details_of_a_change_are_its_payload():
    change = Change.of(("ada", "agent"), "worker", "merge_case", into="x", times=2)
    entry = change.entry(None)
    assert (entry["user_sub"], entry["agent_key"], entry["actor"]) == ("ada", "agent", "worker")
    assert (entry["action"], entry["payload"]) == ("merge_case", {"into": "x", "times": 2})


async def test_each_change_is_an_entry_and_none_is_none(bank: Bank, user: str):
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await note(connection)
        await note(connection, *(Change.of((user, AGENT), "t", action, why="?") for action in ("a", "b")))
    rows = await bank.read(user, select(audit).where(audit.c.user_sub == user).order_by(audit.c.id))
    assert [(row.agent_key, row.actor, row.action, row.payload) for row in rows] == [
        (AGENT, "t", "a", {"why": "?"}),
        (AGENT, "t", "b", {"why": "?"}),
    ]
