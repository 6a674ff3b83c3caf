"""The bank that benchmarks fill is one that a service serves."""

from app import postgres
from bench.bank import filled
from bench.fill import AGENT
from tests.processes import Service, migrated_home


async def test_a_service_retrieves_from_a_filled_bank_and_retains_into_it() -> None:
    with migrated_home() as home:
        async with filled(home, users=1) as bank:
            own = {name: bank.settings.as_environment()[name] for name in ("DATABASE_URL", "CASEBANK_MASTER_KEY")}
            with Service(bank.settings.home, **own) as running, running.client("user-1") as client:
                body = {"agent": AGENT, "query": "Add a column to the users table"}
                assert len(client.post("/v1/retrieve", json=body).json()["cases"]) == 4
                run = {"agent": AGENT, "task": "Add a column", "outcome": "success"}
                assert client.post("/v1/retain", json=run).status_code == 202
        postgres.release(home)
