"""A service in a process of its own: ready when it is yielded, gone afterwards."""

from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from app.processes.own_service import ServiceDidNotStart, own_service
from app.settings import Settings
from tests.processes import alive


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> Settings:
    return Settings(
        home=tmp_path,
        database_url=database_url,
        jwt_secret="a secret of more than thirty-two bytes",
        master_key="5" * 64,
    )


async def test_it_has_the_settings_that_it_was_given_and_ends_with_the_block(settings: Settings):
    async with (
        own_service(settings) as service,
        httpx.AsyncClient(base_url=service.base_url, headers=service.headers("alice"), timeout=60) as client,
    ):
        assert (await client.get("/readyz")).is_success
        run = {"agent": "a", "task": "water the plants", "outcome": "success"}
        assert (await client.post("/v1/retain", json=run)).status_code == 202
        assert alive(service.pid)
    assert not alive(service.pid)


async def test_one_that_ends_while_it_starts_is_an_error_that_says_where_to_look(tmp_path: Path):
    nowhere = Settings(home=tmp_path, database_url="postgresql://127.0.0.1:1/nowhere")
    with pytest.raises(ServiceDidNotStart, match="casebank serve"):
        async with own_service(nowhere):
            pass


async def test_an_error_in_the_block_ends_the_service_too(settings: Settings):
    with suppress(KeyError):
        async with own_service(settings) as service:
            raise KeyError
    assert not alive(service.pid)
