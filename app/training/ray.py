"""Training on a Ray cluster: profiles in shards, each shard trained as one machine would train it."""

from collections.abc import Sequence
from dataclasses import dataclass

import ray

from policy.examples import Examples
from policy.network import Head
from policy.train import train


@dataclass(frozen=True, slots=True)
class OnRay:
    """Trains on the Ray cluster of ``RAY_ADDRESS``, or on one that it starts here."""

    shard: int = 256

    def __call__(self, profiles: Sequence[Examples], seeds: Sequence[int], start: Head) -> list[Head]:
        """Returns a head for each profile, in their order; a lost shard is trained again by Ray."""
        if not ray.is_initialized():
            ray.init(log_to_driver=False, include_dashboard=False, configure_logging=False)
        begun = ray.put(start)
        shards = range(0, len(profiles), self.shard)
        waiting = [
            _train_shard.remote(list(profiles[n : n + self.shard]), list(seeds[n : n + self.shard]), begun)
            for n in shards
        ]
        return [head for heads in ray.get(waiting) for head in heads]


@ray.remote(max_retries=3)
def _train_shard(profiles: list[Examples], seeds: list[int], start: Head) -> list[Head]:
    return train(profiles, seeds, start)
