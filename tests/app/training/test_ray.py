"""Training on Ray: shards on a cluster give the heads that one machine gives."""

import os
from collections.abc import Iterator
from functools import partial

import numpy as np
import pytest

from app.postgres import EmbeddedPostgres
from app.postgres.pools import service_database
from app.training.command import engine, locally
from policy.train import train
from policy.weights import unpack
from tests.conftest import new_database
from tests.policy.builders import logged, start
from tests.writer.conftest import Bank
from tests.writer.trainings import everybody, log, rows, seen
from writer.privacy.keys import Keyring

ray = pytest.importorskip("ray", reason="Ray is not installed: casebank[ray]")
on_ray = pytest.importorskip("app.training.ray").on_ray
PROFILES = 5


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """One worker on this machine."""
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, configure_logging=False)
    yield
    ray.shutdown()


def test_a_cluster_gives_each_profile_the_head_that_one_machine_gives(cluster: None):
    profiles = [logged(np.random.default_rng(number), 30 + number) for number in range(PROFILES)]
    seeds = list(range(PROFILES))
    here = train(profiles, seeds, start())
    there = on_ray(profiles, seeds, start(), shard=2)
    assert len(there) == PROFILES
    for one, other in zip(here, there, strict=True):
        for name, array in one.arrays().items():
            np.testing.assert_allclose(other.arrays()[name], array, rtol=1e-5, atol=1e-6)


async def test_a_night_on_a_cluster_stores_the_heads_and_verdicts_of_one_machine(
    cluster: None, postgres: EmbeddedPostgres
):
    users, nights = [f"user-{number}" for number in range(PROFILES)], []
    for fit in (locally, partial(on_ray, shard=2)):
        async with service_database(await new_database(postgres)) as database:
            bank = Bank(database, Keyring(os.urandom(32)))
            for number, user in enumerate(users):
                await log(bank, user, seen(45, seed=10 + number))
            outcomes = {user: each.outcome for user, each in (await everybody(bank, fit)).items()}
            stored = [row for user in users for row in await rows(bank, user)]
        nights.append((outcomes, [unpack(row.weights, row.checksum, row.feature_version) for row in stored]))
    (here, heads), (there, others) = nights
    assert here == there
    assert len(heads) == PROFILES
    for one, other in zip(heads, others, strict=True):
        assert one.query_linear.any()
        for name, array in one.arrays().items():
            np.testing.assert_allclose(other.arrays()[name], array, rtol=1e-4, atol=1e-5)


def test_no_profiles_are_no_work(cluster: None):
    assert on_ray([], [], start()) == []


def test_the_engine_is_chosen_by_its_name():
    assert engine("ray") is on_ray
    assert engine("local") is locally
