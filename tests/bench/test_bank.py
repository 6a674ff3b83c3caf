"""The bank that benchmarks fill is one that a service serves."""

import httpx

from app import postgres
from app.processes.own_service import own_service
from bench.bank import filled
from bench.fill import AGENT
from tests.processes import new_home


async def test_a_service_retrieves_from_a_filled_bank_and_retains_into_it() -> None:
    with new_home() as home:
        async with (
            filled(home, users=1) as bank,
            own_service(bank.settings) as running,
            httpx.AsyncClient(base_url=running.base_url, headers=running.headers("user-1"), timeout=30) as client,
        ):
            body = {"agent": AGENT, "query": "Add a column to the users table"}
            assert len((await client.post("/v1/retrieve", json=body)).json()["cases"]) == 4
            run = {"agent": AGENT, "task": "Add a column", "outcome": "success"}
            assert (await client.post("/v1/retain", json=run)).status_code == 202
        postgres.release(home)
