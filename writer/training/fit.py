"""The function that trains heads, and the data that it needs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from policy.examples import Examples
from policy.network import Head


class Fit(Protocol):
    """Trains heads."""

    def __call__(self, profiles: Sequence[Examples], seeds: Sequence[int], start: Head) -> list[Head]:
        """Returns a head for each set of examples, with its seed, from where all begin."""


@dataclass(frozen=True, slots=True)
class Demand:
    """The log that a profile needs before a candidate is trained.

    Attributes:
        decisions: rewarded ones, of this version of the features.
        fresh: number of them since the last training.
        half: decisions at which the learned part has half of its weight: the n0 of n / (n + n0).
        members: heads of the ensemble.
    """

    decisions: int = 100
    fresh: int = 50
    half: float = 100.0
    members: int = 5
