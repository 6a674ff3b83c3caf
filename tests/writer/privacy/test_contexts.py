"""The text that a decision told goes with what it may quote."""

from datetime import UTC, datetime
from uuid import UUID

import pytest
import uuid_utils.compat as uuids
from sqlalchemy import select

from retrieval.tables.columns import ALL_AGENTS
from retrieval.tables.decisions import decisions
from tests.writer.conftest import AGENT, Bank
from tests.writer.upkeep.test_expiry import decide
from writer.rights.edit import delete_case


@pytest.mark.parametrize("searched", [AGENT, ALL_AGENTS])
async def test_a_deleted_case_is_quoted_by_no_search_of_its_agent_and_by_none_of_all_agents(
    bank: Bank, user: str, searched: str
):
    (case_id,) = await bank.add(user, {})
    await decide(bank, user, 0, agent_key=searched, told=b"sealed")
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await delete_case(connection, bank.keyring, bank.author(user), case_id)
    rows = await bank.read(user, select(decisions.c.told).where(decisions.c.user_sub == user))
    assert [row.told for row in rows] == [None]


@pytest.mark.parametrize(("hours", "left"), [(0.5, None), (2, b"sealed")])
async def test_a_context_is_kept_if_it_was_told_longer_before_the_case_than_clocks_differ(
    bank: Bank, user: str, hours: float, left: bytes | None
):
    of_clock_ahead = UUID(int=uuids.uuid7().int + (int(hours * 3_600_000) << 80))
    await bank.add(user, {"id": of_clock_ahead})
    await decide(bank, user, 0, told=b"sealed")
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await delete_case(connection, bank.keyring, bank.author(user), of_clock_ahead)
    rows = await bank.read(user, select(decisions.c.told).where(decisions.c.user_sub == user))
    assert [row.told for row in rows] == [left]
