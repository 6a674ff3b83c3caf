"""The function that trains the heads of policies, and the number of decisions that it needs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from policy.examples import Examples
from policy.network import Head


class Fit(Protocol):
    """A function that trains heads, the learned parts of policies, for many profiles at once."""

    def __call__(self, profiles: Sequence[Examples], seeds: Sequence[int], start: Head) -> list[Head]:
        """Returns a trained head for each profile.

        Args:
            profiles: the examples of each profile.
            seeds: the seed of each profile.
            start: the head with which the training of every profile begins.
        """


@dataclass(frozen=True, slots=True)
class Demand:
    """The log that a profile needs before a candidate is trained.

    Attributes:
        decisions: number of rewarded decisions, of the current version of the features.
        fresh: number of such decisions since the last training.
        half: number of decisions at which the head has half of its full weight: the n0 of n / (n + n0).
        members: number of networks in a head, which is an ensemble.
    """

    decisions: int = 100
    fresh: int = 50
    half: float = 100.0
    members: int = 5
