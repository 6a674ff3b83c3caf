"""Policies for tests to store: heads that do what a test wants, without a training."""

from dataclasses import replace
from typing import Any

from policy import features
from policy.inputs import CASE, QUERY
from policy.network import Head, untrained
from policy.weights import pack


def head(**weights: float) -> Head:
    """A head that adds so much of each input, by its name."""
    plain = untrained(len(CASE), len(QUERY))
    linear = plain.linear.copy()
    for name, weight in weights.items():
        linear[:, CASE.index(name)] = weight
    return replace(plain, linear=linear)


def stored(status: str = "candidate", learned: Head | None = None, **more: Any) -> dict[str, Any]:
    """A policy as a trainer would store it; one that changes nothing unless a head is given."""
    weights, checksum = pack(learned or head(), features.VERSION)
    whole = {"feature_version": features.VERSION, "weights": weights, "checksum": checksum, "blend": 1.0}
    return {"status": status, "decisions": 100, "metrics": {}, **whole, **more}
