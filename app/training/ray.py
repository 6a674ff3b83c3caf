"""Training on a Ray cluster: profiles in shards, each shard trained as one machine would train it."""

from collections.abc import Sequence

import ray

from policy.examples import Examples
from policy.network import Head
from policy.train import train

SHARD = 256
"""Number of profiles that one task of the cluster trains."""


def on_ray(profiles: Sequence[Examples], seeds: Sequence[int], start: Head, shard: int = SHARD) -> list[Head]:
    """Trains on the Ray cluster of ``RAY_ADDRESS``, or on one that it starts here; Ray trains a lost shard again.

    Returns a head for each profile, in their order.
    """
    if not ray.is_initialized():
        ray.init(log_to_driver=False, include_dashboard=False, configure_logging=False)
    begun = ray.put(start)
    waiting = [
        _train_shard.remote(list(profiles[n : n + shard]), list(seeds[n : n + shard]), begun)
        for n in range(0, len(profiles), shard)
    ]
    return [head for heads in ray.get(waiting) for head in heads]


@ray.remote(max_retries=3)
def _train_shard(profiles: list[Examples], seeds: list[int], start: Head) -> list[Head]:
    return train(profiles, seeds, start)
