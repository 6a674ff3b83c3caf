"""The connections: the driver that is asked for, and the role that every one of them has."""

import pytest
from sqlalchemy import text

from app.db import SERVICE_ROLE, asyncpg_url, service_database


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+asyncpg"])
def test_every_usual_url_is_one_of_the_driver(scheme: str):
    assert asyncpg_url(f"{scheme}://me@db:5432/bank?ssl=require") == "postgresql+asyncpg://me@db:5432/bank?ssl=require"


@pytest.mark.parametrize("url", ["mysql://db/bank", "postgresql+psycopg://db/bank", "", "/var/run"])
def test_another_database_is_refused_without_quoting_the_url(url: str):
    with pytest.raises(ValueError, match=r"DATABASE_URL must begin with postgresql://$"):
        asyncpg_url(url)


async def test_a_connection_acts_as_the_service_whoever_logs_in(database_url: str):
    async with service_database(database_url, pool_size=1) as database, database.engine.connect() as connection:
        assert await connection.scalar(text("SELECT current_user")) == SERVICE_ROLE
        assert await connection.scalar(text("SELECT session_user")) != SERVICE_ROLE
