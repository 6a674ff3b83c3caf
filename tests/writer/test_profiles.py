"""Listing every profile of every user."""

from datetime import UTC, datetime

from sqlalchemy import func, insert, select

from retrieval.schema import profiles
from tests.writer.conftest import Bank
from writer.profiles import PAGE, each_profile


async def test_every_profile_is_listed_once_however_many_pages_it_takes(bank: Bank, user: str):
    agent = func.to_char(func.generate_series(1, PAGE + 3), "FM00000")
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await connection.execute(
            insert(profiles).from_select(["user_sub", "agent_key"], select(func.concat(user), agent))
        )
    listed = [profile.agent_key async for profile in each_profile(bank.database)]
    assert listed == [f"{number:05}" for number in range(1, PAGE + 4)]
