"""Training on Ray: shards on a cluster give the heads that one machine gives."""

import os
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from app.postgres import EmbeddedPostgres
from app.postgres.pools import service_database
from app.training.command import Local, engine
from policy.train import RIDGES, Plan, train
from tests.conftest import new_database
from tests.policy.builders import QUICK, logged, start
from tests.writer.conftest import AGENT, Bank
from tests.writer.trainings import log, night, seen
from writer.privacy.keys import Keyring
from writer.training import shared_prior
from writer.training.shared_prior import FEWEST_USERS

ray = pytest.importorskip("ray", reason="Ray is not installed: casebank[ray]")
OnRay = pytest.importorskip("app.training.ray").OnRay
PROFILES = 5
CHOOSING = replace(QUICK, ridges=RIDGES)


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """One worker on this machine."""
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, configure_logging=False)
    yield
    ray.shutdown()


def test_a_cluster_gives_each_profile_the_head_that_one_machine_gives(cluster: None):
    profiles = [logged(np.random.default_rng(number), 30 + number) for number in range(PROFILES)]
    seeds = list(range(PROFILES))
    here = train(profiles, QUICK, seeds, start())
    there = OnRay(QUICK, shard=2)(profiles, seeds, start())
    assert len(there) == PROFILES
    for one, other in zip(here, there, strict=True):
        for name, array in one.arrays().items():
            np.testing.assert_allclose(other.arrays()[name], array, rtol=1e-5, atol=1e-6)


async def test_a_fleet_that_is_trained_on_a_cluster_has_the_heads_and_verdicts_of_one_machine(
    cluster: None, postgres: EmbeddedPostgres
):
    nights = []
    for fit in (Local(CHOOSING), OnRay(CHOOSING, shard=2)):
        url = await new_database(postgres)
        async with service_database(url) as database:
            bank = Bank(database, Keyring(os.urandom(32)))
            for number in range(FEWEST_USERS + 1):
                await log(bank, f"sharer-{number}", seen(45, seed=10 + number))
                await bank.set_profile(f"sharer-{number}", contribute=True, receive=True)
            outcomes = {user: each.outcome for user, each in (await night(bank, fit)).items()}
            async with database.as_worker() as connection:
                starts = await shared_prior.latest(connection, start())
        nights.append((outcomes, starts.everybody.head, starts.of(AGENT).head))
    (here, *heads), (there, *others) = nights
    assert here == there
    for one, other in zip(heads, others, strict=True):
        assert any(array.any() for array in one.arrays().values())
        for name, array in one.arrays().items():
            np.testing.assert_allclose(other.arrays()[name], array, rtol=1e-4, atol=1e-5)


def test_no_profiles_are_no_work(cluster: None):
    assert OnRay(QUICK)([], [], start()) == []


def test_the_engine_is_chosen_by_its_name():
    assert isinstance(engine("ray", "cpu"), OnRay)
    assert engine("ray", "cuda").plan == Plan(device="cuda", ridges=RIDGES)
    assert not isinstance(engine("local", "cpu"), OnRay)
