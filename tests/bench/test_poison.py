"""Planted cases, through the service's own retrieve on the real database: what they may take, and what they leave."""

import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from app.postgres import EmbeddedPostgres
from app.postgres.pools import service_database
from bench import poison, poisoned_advice
from bench.poison import HONEST, PLACES, REWARDED, Attack, honest, plants, queries, taken_from
from bench.poisoned_bank import AGENT, PoisonedBank
from tests.conftest import copy_of, new_database
from writer.privacy.keys import Keyring
from writer.profiles import Profile
from writer.replays.profile_replay import replay_if_due
from writer.rewards.feedback import Feedback, give_feedback

USER = "user"
KEYRING = Keyring(os.urandom(32))


@pytest.fixture(scope="module")
async def honest_urls(postgres: EmbeddedPostgres) -> dict[int, str]:
    """The databases of banks of honest cases, to which nobody is connected, by the number of proven cases."""
    some = await new_database(postgres)
    async with service_database(some) as database:
        ids = await PoisonedBank(database, KEYRING).put(USER, honest(REWARDED))
    every, now = await copy_of(postgres, some), datetime.now(UTC)
    async with service_database(every) as database:
        async with database.as_user(USER, now) as connection:
            for case_id in ids[REWARDED:]:
                await give_feedback(connection, USER, "judge", Feedback(1.0, "judge", case_id=case_id))
        await replay_if_due(database, Profile(USER, AGENT, now), at_night=True)
    return {REWARDED: some, HONEST: every}


@pytest.fixture
async def bank(attack: Attack, honest_urls: dict[int, str], postgres: EmbeddedPostgres) -> AsyncIterator[PoisonedBank]:
    """A copy of the honest bank that the attack is on."""
    async with service_database(await copy_of(postgres, honest_urls[attack.proven])) as database:
        yield PoisonedBank(database, KEYRING)


@pytest.mark.parametrize(
    "attack",
    [
        Attack("alike", poison.FEW, 10),
        Attack("aimed", poison.MANY),
        Attack("stuffed", poison.MANY),
        Attack("padded", poison.MANY),
        Attack("chorus", poison.MANY),
        Attack("failures", poison.MANY),
    ],
    ids=str,
)
async def test_planted_runs_take_few_places_and_no_procedure_of_theirs_is_told(bank: PoisonedBank, attack: Attack):
    found = await taken_from(bank, USER, attack, queries()[::3])
    aim = poison.AIM_FEW if attack.count == poison.FEW else poison.AIM_MANY
    assert 100 * max(found.places, found.first) <= aim
    assert found.procedures == 0


async def test_an_agent_whose_cases_are_all_unproven_is_served_as_before(database_url: str):
    async with service_database(database_url) as database:
        bank = PoisonedBank(database)
        await bank.put(USER, plants(Attack("alike", poison.MANY)))
        for query in queries(5):
            answer = await bank.ask(USER, query)
            assert len(answer.choices) == PLACES
            assert answer.procedures


async def test_a_bank_of_honest_runs_advises_no_planted_fix_and_one_of_plants_nothing_else(database_url: str):
    async with service_database(database_url) as database:
        bank = PoisonedBank(database)
        of_honest = await poisoned_advice.advised(bank, "honest", poisoned_advice.honest(40), ())
        of_plants = await poisoned_advice.advised(bank, "forger", (), poisoned_advice.plants("aimed", 40))
    assert all(of_honest)
    assert poisoned_advice.shares(of_honest) == (0, 0)
    assert any(of_plants)
    assert poisoned_advice.shares(of_plants) == (1, 1)
