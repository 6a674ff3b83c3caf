"""Planted cases, through the service's own retrieve on the real database: what they may take, and what they leave."""

from collections.abc import AsyncIterator

import pytest

from app.postgres.pools import service_database
from app.providers.wordllama import WordLlamaEmbedder
from bench import poison
from bench.poison import Attack, ask, honest, plants, queries, share
from bench.poisoned_bank import put
from policy.explore import WAITING_PLACES
from retrieval.database.database import Database
from retrieval.retrieve import Reader

EMBEDDER = WordLlamaEmbedder()
TRIALS = 100 * WAITING_PLACES * 0.05
"""Percent of places that a profile's usual exploration gives to unproven cases, which the tests leave out."""


@pytest.fixture(scope="module")
async def database(database_url: str) -> AsyncIterator[Database]:
    async with service_database(database_url) as database:
        yield database


@pytest.mark.parametrize(
    "attack",
    [
        Attack("alike", poison.FEW),
        Attack("alike", poison.FEW, 10),
        Attack("stuffed", poison.FEW),
        Attack("alike", poison.MANY),
        Attack("stuffed", poison.MANY),
        Attack("failures", poison.MANY),
    ],
    ids=str,
)
async def test_planted_cases_take_few_places_from_proven_ones(database_url: str, database: Database, attack: Attack):
    user, planted = f"{attack}", plants(attack)
    ids = await put(database_url, user, [*honest(), *planted], EMBEDDER)
    taken = 100 * await share(database, user, set(ids[-len(planted) :]), explore=False)
    assert taken + TRIALS <= (poison.AIM_FEW if attack.count == poison.FEW else poison.AIM_MANY)


async def test_an_agent_whose_cases_are_all_unproven_is_served_as_before(database_url: str, database: Database):
    await put(database_url, "new", [*plants(Attack("alike", poison.MANY))], EMBEDDER)
    reader = Reader(database, EMBEDDER)
    for query in queries(5):
        assert len((await ask(reader, "new", query)).choices) == poison.PLACES
