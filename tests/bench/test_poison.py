"""Planted cases, through the service's own retrieve on the real database: what they may take, and what they leave."""

from collections.abc import AsyncIterator

import pytest

from app.postgres.pools import service_database
from bench import poison
from bench.poison import PLACES, Attack, plants, queries, taken
from bench.poisoned_bank import PoisonedBank


@pytest.fixture(scope="module")
async def bank(database_url: str) -> AsyncIterator[PoisonedBank]:
    async with service_database(database_url) as database:
        yield PoisonedBank(database)


@pytest.mark.parametrize(
    "attack",
    [
        Attack("alike", poison.FEW, 10),
        Attack("stuffed", poison.MANY),
        Attack("padded", poison.FEW),
        Attack("padded", poison.MANY),
        Attack("chorus", poison.MANY),
        Attack("failures", poison.MANY),
    ],
    ids=str,
)
async def test_planted_runs_take_few_places_and_no_procedure_of_theirs_is_told(bank: PoisonedBank, attack: Attack):
    found = await taken(bank, attack, queries()[::3])
    aim = poison.AIM_FEW if attack.count == poison.FEW else poison.AIM_MANY
    assert 100 * max(found.places, found.first) <= aim
    assert found.procedures == 0


async def test_an_agent_whose_cases_are_all_unproven_is_served_as_before(bank: PoisonedBank):
    await bank.put("new", plants(Attack("alike", poison.MANY)))
    for query in queries(5):
        answer = await bank.ask("new", query)
        assert len(answer.choices) == PLACES
        assert answer.procedures
