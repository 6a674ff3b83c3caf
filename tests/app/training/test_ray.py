"""Training on Ray: shards on a cluster give the heads that one machine gives."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from app.training.command import Local, engine
from policy.train import RIDGES, Plan, train
from tests.policy.builders import QUICK, logged, start

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


def test_a_cluster_keeps_to_a_fixed_ridge_as_one_machine_does(cluster: None):
    profiles = [logged(np.random.default_rng(7), 40)]
    here = Local(CHOOSING)(profiles, [0], start(), 100.0)
    there = OnRay(CHOOSING)(profiles, [0], start(), 100.0)
    for name, array in here[0].arrays().items():
        np.testing.assert_allclose(there[0].arrays()[name], array, rtol=1e-5, atol=1e-6)


def test_no_profiles_are_no_work(cluster: None):
    assert OnRay(QUICK)([], [], start()) == []


def test_the_engine_is_chosen_by_its_name():
    assert isinstance(engine("ray", "cpu"), OnRay)
    assert engine("ray", "cuda").plan == Plan(device="cuda", ridges=RIDGES)
    assert not isinstance(engine("local", "cpu"), OnRay)
